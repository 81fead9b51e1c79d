from __future__ import annotations

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from support.growth import grows_in_proportion

from airflow_provider_sms.service.echoes import blanked, blanker, forms_of

SECRET = "s3cr+t/key&é~=="
PAIR = f"client:{SECRET}"
HIDDEN = [*forms_of(SECRET), *forms_of(PAIR)]


def in_base64(text):
    return base64.b64encode(text.encode()).decode()


ENCODINGS = {
    "plain": str,
    "percent": lambda text: quote(text, safe=""),
    "percent, lower case": lambda text: re.sub("%..", lambda match: match[0].lower(), quote(text, safe="")),
    "every byte in percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "form": quote_plus,
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "json": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "json in json": lambda text: json.dumps(json.dumps(text)),
    "html": html.escape,
    "html by number": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "html by hex": lambda text: "".join(f"&#x{ord(c):X};" for c in text),
    "html of percent": lambda text: html.escape(quote(text, safe="")),
}
BASE64 = {
    "base64": in_base64,
    "unpadded": lambda text: in_base64(text).rstrip("="),
    "urlsafe": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "urlsafe, unpadded": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("escaped", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("secret", [SECRET, PAIR, in_base64(PAIR)], ids=["secret", "pair", "basic"])
def test_a_secret_is_blanked_however_it_is_escaped(secret, escaped):
    """Escaped for a URL, for JSON or for HTML, also twice: nothing of it shows, and the words around it do."""
    shown = blanked(f"Authorization: {escaped(secret)} is refused", HIDDEN)
    assert "***" in shown
    assert shown.replace("client:", "").replace('\\"', "").replace('"', "") == "Authorization: *** is refused"


@pytest.mark.parametrize("encoded", BASE64.values(), ids=BASE64)
@pytest.mark.parametrize("escaped", [str, ENCODINGS["percent"], ENCODINGS["html"]], ids=["plain", "percent", "html"])
@pytest.mark.parametrize("secret", [SECRET, PAIR, "secret-token"])
def test_a_secret_in_base64_is_blanked(secret, encoded, escaped):
    """Padded or not, in either alphabet, as HTTP Basic sends credentials."""
    hidden = [*HIDDEN, *forms_of("secret-token")]
    shown = blanked(f"Basic {escaped(encoded(secret))} is refused", hidden)
    assert shown.replace("%3D", "") == "Basic *** is refused"


@pytest.mark.parametrize("before", ["", "x", "xx", '{"auth": "Basic ', "another-client:"])
def test_a_secret_within_other_text_in_base64_is_blanked(before):
    """Whatever precedes it: only characters that it shares with its neighbours are left."""
    shown = blanked(in_base64(f"{before}secret-token and more"), forms_of("secret-token"))
    known = in_base64(f"{before}secret-token and more")
    assert "***" in shown
    assert len(known) - len(shown) >= len("secret-token") * 8 // 6 - 2 - len("***")


def test_words_without_a_secret_stay_as_they_are():
    """Nothing is decoded for its own sake."""
    words = 'at 50%25 &amp; "caf\\u00e9" &#39;x&#39;'
    assert blanked(words, HIDDEN) == words


def test_a_text_is_blanked_as_well():
    """Message texts are hidden, too: also with the plus signs of a form, and with an escaped line end."""
    hidden = ["Hi Thandi!\nR5 is due"]
    assert blanked(quote_plus(hidden[0]), hidden) == "***"
    assert blanked(json.dumps(hidden[0]), hidden) == '"***"'


TEXT = "Dear Thandeka, your one-time code is 4711. Do not tell it to anybody."
PIECES = {
    "cut": TEXT[:34] + "...",
    "without its beginning": TEXT[5:],
    "upper case": TEXT.upper(),
    "other white space": TEXT.replace(" ", "\n  "),
    "other signs": TEXT.replace("-", "\N{NON-BREAKING HYPHEN}").replace(",", " -"),
    "cut, in percent": quote(TEXT[:34]),
    "cut, in json": json.dumps(TEXT.upper().replace(" ", "\n"))[1:60],
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_a_piece_of_a_text_is_blanked(piece):
    """Cut off, in capital letters or with other white space and signs: the words around it stay."""
    shown = blanked(f"text invalid: {piece}", [TEXT])
    assert shown.startswith("text invalid: ***")
    assert not re.search("thandeka|one|time|code|tell", shown, re.IGNORECASE)


@pytest.mark.parametrize("words", ["no route", "Text 'one-time' refused", TEXT[:-1], TEXT[5:40].upper()])
def test_many_short_texts_are_blanked_as_one_is(words):
    """Pieces of them, that is; the hidden texts are not read for words that are too short to repeat one."""
    read = []

    def hidden():
        read.append(TEXT)
        yield TEXT

    blank = blanker(hidden())
    assert (blank("blocked"), read) == ("blocked", [])
    assert [blank(words), blank(words)] == [blanked(words, [TEXT])] * 2
    assert not re.search("thandeka|code|tell", blank(quote_plus(TEXT)), re.IGNORECASE)


def test_a_piece_of_a_secret_is_blanked():
    """Eight characters of a token are enough, since no words hold them by chance."""
    assert blanked("bad token 9f86D081e3b0…", ["9f86d081e3b0c442"]) == "bad token ***…"
    assert blanked("bad token 9f86d08…", ["9f86d081e3b0c442"]) == "bad token 9f86d08…"


def test_a_short_piece_stays():
    """Fewer than 12 letters and digits of a text occur in any words, which would say nothing without them."""
    words = "Your account was not found, dear customer"
    assert blanked(words, ["Dear Thandi, your account was credited"]) == f"***{words[16:]}"
    assert blanked(words, ["Dear Thandi, the account is credited"]) == words


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["%41", "%", "\\u0041", "\\", "&amp;", "&a", "&#1"])
def test_blanking_takes_time_in_proportion_to_the_text(piece):
    """Ten times the text takes no more than some ten times as long."""
    assert grows_in_proportion(lambda text: blanked(text, HIDDEN), piece * (500_000 // len(piece)))
