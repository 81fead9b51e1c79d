from __future__ import annotations

import subprocess
import sys

import pytest


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
    "arguments",
    [
        (),
        ("resolve", "1"),
        ("resolve", "1", "--as", "lost"),
        ("list", "--limit", "0"),
        ("purge",),
        *(("purge", f"--older-than={days}", "--yes") for days in ("90d", "0", "-1", "1.5", "")),
    ],
)
def test_wrong_usage_is_status_2(ledger, file_store, arguments):
    """Wrong usage has another status than a command that was not done; no number of days purges nothing."""
    assert ledger(*arguments).status == 2


@pytest.mark.parametrize("which", [(), ("1", "--campaign", "spring")])
def test_requests_are_named_in_one_way(ledger, file_store, which):
    """By their numbers, or all of a campaign: neither and both close nothing."""
    said = ledger("resolve", *which, "--as", "accepted")
    assert (said.status, "Give the numbers of requests, or --campaign NAME" in said.err) == (1, True)
