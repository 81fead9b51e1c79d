"""Single texts: the form in which a text is compared and sent, and the words that stand for no text.

A module of its own beside :mod:`~airflow_provider_sms.messages.texts`, which does the same for whole Arrow columns: a
DAG file is loaded every few seconds, and its texts are checked without Arrow.
"""

from __future__ import annotations

import unicodedata

BLANKS = " \t\u3000\u200b\ufeff"
"""The characters removed around a text, where nobody sees them: also U+3000, the space of East Asian texts, and two
characters without width, U+200B and U+FEFF."""
NO_BREAK_SPACES = "\u00a0\u2007\u202f"
WINDOWS_LINE_END = "\r\n"
_TO_SPACES = dict.fromkeys(map(ord, NO_BREAK_SPACES), " ")

MISSING_WORDS = ("nan", "NaN", "NaT", "<NA>", "None", "null", "NULL", "#N/A", "\\N")
"""Texts that pandas, NumPy, Java, databases, Excel and Hive write where there is no value. They count only as whole
texts in exactly this spelling: ``Nan`` is a first name, and ``Null`` a surname."""


def tidy_text(text: str) -> str:
    """Return a text as :func:`plain_text` does, without blanks around it."""
    return plain_text(text).strip(BLANKS)


def plain_text(text: str) -> str:
    """Return a text in Unicode's composed form (NFC), no-break spaces as spaces, and each line end as one character."""
    return unicodedata.normalize("NFC", text).translate(_TO_SPACES).replace(WINDOWS_LINE_END, "\n")
