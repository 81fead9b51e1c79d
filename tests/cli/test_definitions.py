from __future__ import annotations

import subprocess
import sys

import pytest

from airflow_provider_sms.cli.definitions import parse_age


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


NO_AGES = ["90", "d", "90m", "-1d", "1.5d", "23h", "0d", "90 d", "9\u0660d"]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("resolve", "1"),
        ("resolve", "1", "--as", "lost"),
        ("resolve", "--as", "accepted"),
        ("resolve", "1", "--campaign", "spring", "--as", "accepted"),
        ("list", "--limit", "0"),
        ("purge",),
        *(("purge", f"--older-than={age}", "--yes") for age in NO_AGES),
        ("list", "--ledger-conn-id", ""),
    ],
)
def test_wrong_usage_is_status_2(ledger, file_store, arguments):
    """Wrong usage has another status than a command that was not done; less than a day, or no age, purges nothing."""
    assert ledger(*arguments).status == 2
