from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.recipients.regions import read_region


@pytest.mark.parametrize("written", ["ZA", "za", "Za", " za "])
def test_small_letters_are_taken(written):
    """As of everything that takes a country; it is the same country everywhere."""
    assert read_region(written) == "ZA"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        *((each, repr(each)) for each in ("", "XX", "ZAF", "South Africa", "27", None, 5, ["ZA"])),
        ("27820000001", "'2782*****01'"),  # two arguments of a command were mixed up
        ("UK", "'UK'; did you mean 'GB'?"),
    ],
)
def test_what_is_no_region_is_refused(written, shown):
    """The error shows how one is written, and no number."""
    with pytest.raises(InputError) as caught:
        read_region(written)
    words = "default_region must be a country as in ISO 3166 alpha-2, such as 'ZA', not "
    assert str(caught.value) == words + shown
