from __future__ import annotations

import pytest

from airflow_provider_sms.recipients.number_lists import (
    could_be_number,
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
