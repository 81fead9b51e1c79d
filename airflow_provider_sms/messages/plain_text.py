"""Single texts: the form in which a text is compared and sent, without what nobody sees.

A module of its own beside :mod:`~airflow_provider_sms.messages.texts`, which does the same for whole Arrow columns: a
DAG file is loaded every few seconds, and its texts are checked without Arrow.

Unseen characters are those that Unicode calls default-ignorable, such as the zero-width space, the soft hyphen and
direction marks (``DerivedCoreProperties.txt``), annotations, and all control characters but tabs and line breaks. Most
are never seen, and go. The others stay where they change what is seen:

- a zero-width joiner between two pictures, as in a family, and after a letter of a script that joins its letters, as in
  Malayalam; a zero-width non-joiner between two such letters, as in Persian;
- a variation selector after a picture, in a keycap, after a Han character, and after a Mongolian letter;
- tags in the flag of a region, such as England's.
"""

from __future__ import annotations

import re
import unicodedata

BLANKS = " \u3000"
"""The characters removed around a text: U+3000 is the space of East Asian texts."""

# Each of these is the inside of a regular expression's class.
_OTHER_BLANKS = "\t\xa0\u2007\u202f"
_BREAKS = "\n\v\f\r\x85\u2028\u2029"
_NEVER_SEEN = (
    "\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e001f\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_SOMETIMES_SEEN = "\u180b-\u180f\u200c\u200d\ufe00-\ufe0f\U000e0020-\U000e007f\U000e0100-\U000e01ef"
_PICTURES = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u24c2\u25aa-\u27bf\u2934\u2935"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINED = "\u0620-\u0dff\u1000-\u109f\u1780-\u180a\u1810-\u1cff\ua800-\uabff\U00010a00-\U00011fff\U0001e900-\U0001e95f"
"""The blocks of Arabic to Sinhala, Myanmar, Khmer, Mongolian to Vedic, Syloti to Meetei Mayek, and later ones."""
_MONGOLIAN = "\u1820-\u18aa"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

_is_changed = re.compile(f"[{_OTHER_BLANKS}{_BREAKS}{_NEVER_SEEN}{_SOMETIMES_SEEN}]").search
_other_blank = re.compile(f"[{_OTHER_BLANKS}]")
_line_break = re.compile(f"\r\n|[{_BREAKS}]")
_never_seen = re.compile(f"[{_NEVER_SEEN}]")
_seen_or_not = re.compile(
    f"(?=[{_SOMETIMES_SEEN}])(?:("
    f"(?<=[{_PICTURES}])(?:[\ufe0e\ufe0f]|\u200d(?=[{_PICTURES}]))"
    f"|(?<=[{_PICTURES}][\ufe0e\ufe0f])\u200d(?=[{_PICTURES}])"
    f"|(?<=[{_JOINED}])(?:\u200d|\u200c(?=\u200c*[{_JOINED}]))"
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    f"|(?<=[{_HAN}])[\ufe00-\ufe02\U000e0100-\U000e01ef]|(?<=[{_MONGOLIAN}])[\u180b-\u180f]"
    "|(?<=\U0001f3f4)[\U000e0020-\U000e007e]+\U000e007f"
    ")|.)"
)
"""One of the characters that are sometimes seen, or the tags of a flag: as a group, where they are."""


def tidy_text(text: str) -> str:
    """Return a text as :func:`plain_text` does, without blanks around it."""
    return plain_text(text).strip(BLANKS)


def tidy_value(value: str) -> str:
    """Return a value as it stands in a text and in a key: tidied, with a blank in place of each line break."""
    return tidy_text(_line_break.sub(" ", value))


def plain_text(text: str) -> str:
    r"""Return a text as people see it: without unseen characters, and in Unicode's composed form (NFC).

    Tabs and no-break spaces are spaces, and each line break is ``\n``.
    """
    if _is_changed(text):
        text = _line_break.sub("\n", _other_blank.sub(" ", text))
        text = _seen_or_not.sub(r"\1", _never_seen.sub("", text))
    return unicodedata.normalize("NFC", text)
