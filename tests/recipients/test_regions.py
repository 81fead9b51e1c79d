from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.recipients.regions import read_region


@pytest.mark.parametrize("written", ["ZA", "za", "Za", " za "])
def test_small_letters_are_taken(written):
    """As of everything that takes a country; it is the same country everywhere."""
    assert read_region(written) == "ZA"


@pytest.mark.parametrize("written", ["", "XX", "ZAF", "South Africa", "27", None, 5, ["ZA"]])
def test_what_is_no_region_is_refused(written):
    """The error shows how one is written."""
    with pytest.raises(
        InputError, match=r"^default_region must be a country as in ISO 3166 alpha-2, such as 'ZA', not "
    ):
        read_region(written)


def test_a_number_in_place_of_a_region_is_masked():
    """Two arguments of a command were mixed up."""
    with pytest.raises(InputError) as caught:
        read_region("27820000001")
    assert "27820000001" not in str(caught.value)


def test_the_united_kingdom_is_named():
    """Its code is not the one that people write."""
    with pytest.raises(InputError, match=r"not 'UK'; did you mean 'GB'\?$"):
        read_region("UK")
