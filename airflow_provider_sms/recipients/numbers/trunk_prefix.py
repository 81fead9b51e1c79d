"""Trunk prefixes after a country code, as in +27 082 123 4567: digits that are dialled within a country only.

So is the 15 of an Argentine mobile number, as in +54 11 15 2345 6789.

The number is the same without them, so the recipient must be the same too. Most numbers are read without phonenumbers,
which is slow to import, so this module does not use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_ARGENTINA = b"54"
_ARGENTINE_MOBILE = 14
"""Digits of an Argentine mobile number with a 15 after the area code, which is dialled within the country only."""
_DIGITS = 4
"""The most digits that a country code and the trunk prefix of its country take together."""
_ONE_DIGIT = frozenset("17")
_TWO_DIGITS = frozenset(
    (  # noqa: SIM905  # a list would be a page
        "20 27 28 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 "
        "83 84 86 89 90 91 92 93 94 95 98"
    ).split()
)
"""Country codes of two digits; all codes that begin otherwise have three (ITU-T E.164, annex)."""


def _may_begin(digits: str) -> bool:
    """Return whether a country code and a trunk prefix may stand at the start of a number.

    Trunk prefixes begin with 0, except 8 around Russia, and 1 in North America and the Marshall Islands. Lithuania and
    Uzbekistan have given up the 8, which older versions of phonenumbers still know.
    """
    length = 1 if digits[0] in _ONE_DIGIT else 2 if digits[:2] in _TWO_DIGITS else 3
    return digits[length] == "0" or digits.startswith(("11", "78", "3708", "3758", "6921", "9938", "9988"))


_MAY_BEGIN = np.array([_may_begin(f"{number:0{_DIGITS}}") for number in range(10**_DIGITS)])


def find_trunk_prefixes(offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return which numbers have a country code and digits that are dialled within that country only.

    :param offsets: where each number begins in the data, and where the last ends.
    :param data: digits in ASCII, each number with its country code.
    """
    starts, lengths = offsets[:-1], np.diff(offsets)
    long = lengths > _DIGITS
    found = np.zeros(len(starts), np.bool_)
    if not long.any():
        return found
    beginnings = np.zeros(int(long.sum()), np.int64)
    for place in range(_DIGITS):
        beginnings = beginnings * 10 + (data[starts[long] + place] - ord("0"))
    doubtful = _MAY_BEGIN[beginnings]
    if doubtful.any():
        # phonenumbers is slow to import.
        from airflow_provider_sms.recipients.numbers.national import begins_with_trunk_prefix

        certain = np.zeros(10**_DIGITS, np.bool_)
        for beginning in np.unique(beginnings[doubtful]).tolist():
            certain[beginning] = begins_with_trunk_prefix(f"{beginning:0{_DIGITS}}")
        found[long] = certain[beginnings]
    argentine = lengths == _ARGENTINE_MOBILE
    for place, digit in enumerate(_ARGENTINA):
        argentine &= data[np.minimum(starts + place, len(data) - 1)] == digit
    found |= argentine
    return found
