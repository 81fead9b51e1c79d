from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentTypeError
from datetime import datetime, timedelta, timezone

import pytest

from airflow_provider_sms.cli.definitions import get_cli_commands, parse_age, parse_limit, parse_map_index, parse_time
from airflow_provider_sms.get_provider_info import get_provider_info


def test_the_metadata_names_the_commands():
    """The provider's metadata names the function that returns them, and each of them can be imported."""
    assert get_provider_info()["cli"] == ["airflow_provider_sms.cli.definitions.get_cli_commands"]
    (sms,) = get_cli_commands()
    (group,) = sms.subcommands
    names = sorted(command.name for command in group.subcommands)
    assert (sms.name, group.name) == ("sms", "ledger")
    assert names == [
        "adopt",
        "export",
        "forget",
        "list",
        "migrate",
        "pause",
        "purge",
        "resolve",
        "resume",
        "status",
        "unknown",
        "who",
    ]


def test_the_definitions_import_nothing_heavy():
    """They are imported at each ``airflow`` call, so they import no other module of the package."""
    code = (
        "import sys, airflow.cli.cli_config, airflow_provider_sms; before = set(sys.modules)\n"
        "import airflow_provider_sms.cli.definitions as d; d.get_cli_commands()\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stdout.strip().splitlines()[-1] == "['airflow_provider_sms.cli', 'airflow_provider_sms.cli.definitions']"
    )


@pytest.mark.parametrize(
    ("written", "seconds"), [("24h", 86_400), ("36h", 129_600), ("90d", 7_776_000), ("2w", 1_209_600)]
)
def test_an_age_is_a_number_and_a_unit(written, seconds):
    """Hours, days and weeks."""
    assert parse_age(written) == seconds


@pytest.mark.parametrize("written", ["90", "d", "90m", "-1d", "1.5d", "23h", "0d", "90 d", "9\u0660d"])
def test_text_that_is_no_age_is_wrong_usage(ledger, airflow_home, written):
    """An age that is not understood, or less than a day, purges nothing."""
    assert ledger("purge", f"--older-than={written}", "--yes").status == 2


def test_times_are_read_as_they_are_written():
    """Without an offset a time is in UTC; a date alone and other text are refused."""
    noon = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
    for written in ("2026-11-22T12:00", "2026-11-22 12:00:00", "2026-11-22T12:00:00Z", "2026-11-22T14:00+02:00"):
        assert parse_time(written) == noon
    assert parse_time("2026-11-22T14:00+02:00").utcoffset() == timedelta(hours=2)
    for written in ("2026-11-22", "noon", "12:00", ""):
        with pytest.raises(ArgumentTypeError, match="is not a time"):
            parse_time(written)


def test_a_limit_is_a_whole_number_above_0():
    """Anything else is wrong usage."""
    assert parse_limit("20") == 20
    for written in ("0", "-1", "1.5", "all", "", "9999999999"):
        with pytest.raises(ArgumentTypeError, match="not a whole number above 0"):
            parse_limit(written)


def test_a_map_index_is_one_that_airflow_has():
    """A task that is not mapped has -1; no database holds an index beyond that of its column."""
    assert [parse_map_index(written) for written in ("-1", "0", "12")] == [-1, 0, 12]
    for written in ("-2", "1.5", "all", "", "9999999999"):
        with pytest.raises(ArgumentTypeError, match="not the index of a mapped task"):
            parse_map_index(written)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("status",),
        ("resolve", "1"),
        ("resolve", "one", "--as", "accepted"),
        ("resolve", "1", "--as", "lost"),
        ("purge",),
        ("status", "c", "-o", "csv"),
        ("list", "--ledger-conn-id", ""),
    ],
)
def test_wrong_usage_is_status_2(ledger, arguments):
    """Wrong usage has another status than a command that was not done."""
    assert ledger(*arguments).status == 2
