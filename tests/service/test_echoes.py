from __future__ import annotations

import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from support.growth import grows_in_proportion

from airflow_provider_sms.service.echoes import blanker

SECRET = "s3cr+t/key&é~=="
PAIR = f"client:{SECRET}"
TEXT = "Dear Thandeka, your one-time code is 4711. Do not tell it to anybody."


def blanked(text, hidden):
    return blanker(hidden)(text)


ESCAPES = {
    "percent": lambda text: quote(text, safe=""),
    "percent, lower case": lambda text: re.sub("%..", lambda match: match[0].lower(), quote(text, safe="")),
    "form": quote_plus,
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "json": lambda text: json.dumps(f"{text}\n")[1:-1],
    "json in json": lambda text: json.dumps(json.dumps(text)),
    "html": html.escape,
    "html by number": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "html by hex": lambda text: "".join(f"&#x{ord(c):X};" for c in text),
}


@pytest.mark.parametrize("escaped", ESCAPES.values(), ids=ESCAPES)
@pytest.mark.parametrize("secret", [SECRET, PAIR, f"{TEXT}&"], ids=["secret", "pair", "text"])
def test_words_with_an_escape_are_not_shown(secret, escaped):
    """What is escaped for a URL, for JSON or for HTML may be all of the request."""
    assert blanked(f"Authorization: {escaped(secret)} is refused", [SECRET, PAIR, TEXT]) == "***"


@pytest.mark.parametrize("secret", [SECRET, PAIR, TEXT, "4711"])
def test_a_hidden_text_is_blanked(secret):
    """The longest first; the words around it stay."""
    assert blanked(f"{secret} is refused", ["", SECRET, PAIR, TEXT, "4711"]) == "*** is refused"


def test_words_without_a_hidden_text_stay_as_they_are():
    """Nothing is changed for its own sake, nor where a hidden text is too short to mean anything; each text anew."""
    words = 'at 50% & "café" <x>'
    assert blanked(words, [SECRET, PAIR, "at"]) == words
    blank = blanker(iter([TEXT]))
    assert [blank("blocked"), blank(TEXT), blank(TEXT.upper())] == ["blocked", "***", "***."]


PIECES = {
    "cut": TEXT[:34] + "...",
    "without its beginning": TEXT[5:],
    "upper case": TEXT.upper(),
    "other white space": TEXT.replace(" ", "\n  "),
    "other signs": TEXT.replace("-", "\N{NON-BREAKING HYPHEN}").replace(",", " -"),
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_a_piece_of_a_text_is_blanked(piece):
    """Cut off, in capital letters or with other white space and signs: the words around it stay."""
    shown = blanked(f"text invalid: {piece}", [TEXT])
    assert shown.startswith("text invalid: ***")
    assert not re.search("thandeka|one|time|code|tell", shown, re.IGNORECASE)


def test_a_short_piece_stays():
    """Fewer than 12 letters and digits of a text occur in any words, which would say nothing without them."""
    words = "Your account was not found, dear customer"
    assert blanked(words, ["Dear Thandi, your account was credited"]) == f"***{words[16:]}"
    assert blanked(words, ["Dear Thandi, the account is credited"]) == words


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["%4", "%", "\\u004", "\\", "&amp", "&a", "&#1"])
def test_blanking_takes_time_in_proportion_to_the_text(piece):
    """Ten times the text takes no more than some ten times as long."""
    assert grows_in_proportion(lambda text: blanked(text, [SECRET, PAIR]), piece * (500_000 // len(piece)))
