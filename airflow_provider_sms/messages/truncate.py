"""A text that is no longer than a number of SMS."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right

from airflow_provider_sms.messages.parts import count_parts

ELLIPSIS = "..."
"""Three full stops: the one character for it is not in the GSM alphabet, and would double the price of the text."""

_JOINER = "\u200d"


def shortened(text: str, parts: int) -> str:
    """Cut a text to a number of SMS, where it is longer.

    What is cut ends with three full stops, and never within a character as people see it: neither before an accent or
    another mark (Unicode category M), nor within an emoji that is joined of several.

    :param text: of any length and alphabet.
    :param parts: SMS that it may take, at least 1.
    :returns: the text itself where it fits.
    """
    if count_parts(text) <= parts:
        return text
    # More characters never take fewer parts, so that the longest beginning that fits can be searched for by halves.
    end = bisect_right(range(len(text)), parts, key=lambda length: count_parts(text[:length] + ELLIPSIS)) - 1
    while end and (unicodedata.category(text[end])[0] == "M" or _JOINER in text[end - 1 : end + 1]):
        end -= 1
    return text[:end].rstrip() + ELLIPSIS
