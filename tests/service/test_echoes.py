from __future__ import annotations

import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest

from airflow_provider_sms.service.echoes import WITHHELD, harmless

SECRET = "s3cr+t/key&é~=="
PAIR = f"client:{SECRET}"
TEXT = "Dear Thandeka, your one-time code is 4711. Do not tell it to anybody."


def shown(words, hidden):
    return harmless(hidden, 300)(words)


ESCAPES = {
    "percent": lambda text: quote(text, safe=""),
    "percent, lower case": lambda text: re.sub("%..", lambda match: match[0].lower(), quote(text, safe="")),
    "form": quote_plus,
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "json": lambda text: json.dumps(f"{text}\n")[1:-1],
    "python": lambda text: "".join(f"\\x{ord(c):02x}" for c in text),
    "json in json": lambda text: json.dumps(json.dumps(text)),
    "html": html.escape,
    "html by number": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "html by hex": lambda text: "".join(f"&#x{ord(c):X};" for c in text),
}


@pytest.mark.parametrize("escaped", ESCAPES.values(), ids=ESCAPES)
@pytest.mark.parametrize("secret", [SECRET, PAIR, f"{TEXT}&"], ids=["secret", "pair", "text"])
def test_words_with_an_escape_are_not_shown(secret, escaped):
    """What is escaped for a URL, for JSON or for HTML may be all of the request."""
    assert shown(f"Authorization: {escaped(secret)} is refused", [SECRET, PAIR, TEXT]) == WITHHELD


IN_UNICODE = ["You owe R5…", "HIV™ +ve", "น้ำประ", "ＡＢＣ検査"]


@pytest.mark.parametrize("secret", [SECRET, PAIR, TEXT, "4711", SECRET.encode().hex(), *IN_UNICODE])
def test_words_that_repeat_a_hidden_text_are_withheld(secret):
    """As it is, or in hexadecimal digits; words and texts are compared in one form of Unicode."""
    assert shown(f"{secret} is refused", ["", SECRET, PAIR, TEXT, "4711", *IN_UNICODE]) == WITHHELD


def test_words_without_a_hidden_text_are_shown():
    """On one line, cut, with masked numbers; a hidden text that is too short to mean anything hides nothing."""
    words = 'at 50% & "café" <x>'
    assert shown(words, [SECRET, PAIR, "at"]) == words
    arabic, circled = ("".join(chr(first + int(digit)) for digit in "27831234567") for first in (0x660, 0x245F))
    assert shown(f"to\n\x1b 27821234567,\t{circled}", [SECRET]) == "to 2782*****67, 2783*****67"
    assert shown(arabic, [SECRET]) == f"{arabic[:4]}*****{arabic[-2:]}"
    clean = harmless(iter([TEXT]), 10)
    assert [clean("blocked"), clean(TEXT), clean(TEXT.upper())] == ["blocked", WITHHELD, WITHHELD]
    assert clean("x" * 11) == f"{'x' * 9}…"


PIECES = {
    "cut": TEXT[:34] + "...",
    "without its beginning": TEXT[5:],
    "upper case": TEXT.upper(),
    "other white space": TEXT.replace(" ", "\n  "),
    "without accents": "Vysledek testu je pozitivni",
    "other signs": TEXT.replace("-", "\N{NON-BREAKING HYPHEN}").replace(",", " -"),
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_words_with_a_piece_of_a_text_are_withheld(piece):
    """Cut off, in capital letters or with other white space and signs."""
    assert shown(f"text invalid: {piece}", [TEXT, "Výsledek testu je pozitivní"]) == WITHHELD


def test_a_short_piece_is_shown():
    """Fewer than 12 letters and digits of a text occur in any words, which would say nothing without them."""
    words = "Your account was not found, dear customer"
    assert shown(words, ["Dear Thandi, your account was credited"]) == WITHHELD
    assert shown(words, ["Dear Thandi, the account is credited"]) == words
