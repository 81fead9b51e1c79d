from __future__ import annotations

import numpy as np
import pytest

from airflow_provider_sms.recipients.number_lists import (
    could_be_number,
    first_other,
    holds_several,
    is_date,
    is_number_list,
    path_without_numbers,
)


@pytest.mark.parametrize(
    ("text", "could_be"),
    [
        ("27820000001", True),
        ("+27 (82) 000-0001", True),
        ("0820000001", True),
        ("27820000001.0", True),
        ("27820000001, 27820000002", True),
        ("\N{FULLWIDTH DIGIT TWO}7820000001", True),
        ("2026-01-31 27820000001", True),
        ("082", False),
        ("", False),
        ("20260131", False),
        ("2026-01-31", False),
        ("2026-01-31T09:00:00+00:00", False),
        ("2026/01/31", False),
        ("2026/01/31/07", False),
        ("082/000/0001", True),
        ("/27820000001", False),
        ("*27820000001", False),
        ("27820000001.csv", False),
        ("people.parquet", False),
        ("{{ 27820000001 }}", False),
    ],
)
def test_a_text_that_could_be_a_number_is_known(text, could_be):
    """It has seven digits beside dates, and nothing of a path."""
    assert could_be_number(text) is could_be


@pytest.mark.parametrize(
    ("source", "is_list"),
    [
        (["27820000001"], True),
        (("27820000001", 27820000002), True),
        (["27820000001", "082", "", None], True),
        ([np.int64(27820000001)], True),
        ([np.str_("27820000001"), None], True),
        ([np.bool_(1), "27820000001"], False),
        (["082"], False),
        (["20260131", "20260201"], False),
        ([], False),
        ([True, "27820000001"], False),
        (["27820000001", "people.parquet"], False),
        ([{"destination": "27820000001"}], False),
        ("27820000001", False),
    ],
    ids=str,
)
def test_a_list_of_numbers_holds_nothing_else(source, is_list):
    """One of them could be a number, and none could be a path; one that is too short is a row like others."""
    assert is_number_list(source) is is_list


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("27820000001,27820000002", True),
        ("27820000001\n27820000002", True),
        ("2782000 2782001", True),
        ("27820000001 27820000002", True),
        ("27820000001\n", False),
        ("+27 (82) 000-0001", False),
        ("082/000/0001", False),
    ],
    ids=repr,
)
def test_several_numbers_in_one_text_are_known(text, several):
    """Read as one number they would text, or suppress, nobody who was meant."""
    assert holds_several(text) is several


@pytest.mark.parametrize(("text", "date"), [("2026-11-22", True), ("20261122 ", True), ("27820000001", False)])
def test_a_date_is_known(text, date):
    """It has the digits of a short number."""
    assert is_date(text) is date


def test_the_element_that_is_no_number_is_found():
    """Its position is said, and not what it is."""
    assert first_other(["27820000001", "082", "Ann"]) == 2
    assert first_other(["27820000001", {"destination": "27820000002"}]) == 1
    assert first_other(["27820000001", "27820000002"]) is None
    assert first_other(["people.parquet", "more.parquet"]) is None


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("27820000001x", "2782*****01x"),
        ("/data/Ann;+27 82 000 0001", "/data/Ann;2782*****01"),
        ("s3://b/phone=27820000001/a.parquet", "s3://b/phone=2782*****01/a.parquet"),
        ("/data/2026-01-31/people-20260131.parquet", "/data/2026-01-31/people-20260131.parquet"),
        ("/data/manual__2026-01-31T09:00:00+00:00/a.csv", "/data/manual__2026-01-31T09:00:00+00:00/a.csv"),
        ("/data/2026/01/31/07", "/data/2026/01/31/07"),
    ],
)
def test_a_path_is_shown_without_numbers(path, shown):
    """Dates stay, since an error without them says nothing."""
    assert path_without_numbers(path) == shown
