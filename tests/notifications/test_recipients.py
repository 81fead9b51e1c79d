from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.notifications.recipients import recipients

FIRST, SECOND = "27821234567", "27831234567"


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("+27 82 123 4567", [FIRST]),
        (27821234567, [FIRST]),
        ("082 123 4567, +27831234567", [FIRST, SECOND]),
        (["0821234567", 27831234567], [FIRST, SECOND]),
        (("0831234567,0821234567", "+27821234567"), [SECOND, FIRST]),
        ("0821234567,\n +27 (0)82 123 4567,, ", [FIRST]),
        ("", []),
        ([], []),
    ],
)
def test_numbers_are_read_as_people_write_them(to, expected):
    """One or several, as text with commas or as a list, each person once, in the order given."""
    assert (expected, []) == recipients(to, "ZA")


@pytest.mark.parametrize(
    ("to", "refused"), [("0821234567", "0821234567"), ("on call", "on call"), ([None], "None"), ("12", "12")]
)
def test_what_is_no_number_is_given_back(to, refused):
    """A number that cannot be read is named with its reason, and does not keep the others from being read."""
    numbers, ((written, reason),) = recipients([FIRST, to] if isinstance(to, str) else [FIRST, *to], None)
    assert ([FIRST], refused, True) == (numbers, written, bool(reason))


def test_an_unknown_region_is_an_error():
    """A region is ISO 3166 alpha-2."""
    with pytest.raises(InputError, match="default_region must be a country"):
        recipients(FIRST, "South Africa")
