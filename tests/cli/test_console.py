from __future__ import annotations

import time

import pytest
import yaml
from support.sending import people

from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN

LONG_AGO = time.time() - 100 * 86_400


def test_every_form_of_output_is_airflows(ledger, sent_to_file):
    """YAML can be parsed, and plain has a line for each request and one above."""
    sent_to_file(people(1), UNKNOWN)
    assert [row["campaign"] for row in yaml.safe_load(ledger("unknown", "-o", "yaml").out)] == ["spring"]
    assert len(ledger("unknown", "-o", "plain").out.splitlines()) == 2


def test_names_are_shown_as_they_are(ledger, sent_to_file):
    """What looks like a style or an emoji to the table's printer is a name like any other."""
    name = "[red]spring :bomb:"
    sent_to_file(people(1), ACCEPTED, campaign=name)
    assert name in ledger("status", name).out


@pytest.mark.parametrize("answer", ["n\n", "\n", "", "yess\n", KeyboardInterrupt()])
def test_nothing_but_yes_is_yes(ledger, sent, holders, at_terminal, rows, answer):
    """No, nothing, the end of input, another word or Ctrl-C: status 1, and the ledger is as it was."""
    request = sent(people(3), UNKNOWN)
    at_terminal(answer)
    said = ledger("resolve", request, "--as", "not-sent")
    assert (said.status, said.err.endswith("Nothing was done\n")) == (1, True)
    assert (holders(people(3)), rows("SELECT * FROM sms_decision")) == ({UNKNOWN}, [])


@pytest.mark.parametrize("command", ["resolve", "adopt", "purge"])
def test_without_a_terminal_a_script_must_say_yes(ledger, sent, rows, monkeypatch, command):
    """Nobody can be asked: without ``--yes`` nothing is done, with it everything is."""
    request = sent(people(3), UNKNOWN)
    sent(people(3), campaign="old", at=LONG_AGO)
    arguments = {
        "resolve": ("resolve", request, "--as", "accepted"),
        "adopt": ("adopt", "d", "t", "another run"),
        "purge": ("purge", "--older-than", "90d"),
    }[command]
    before = rows("SELECT state FROM sms_request ORDER BY id"), rows("SELECT id FROM sms_claimant")
    with open("/dev/null") as nothing:  # noqa: PTH123  # a device
        monkeypatch.setattr("sys.stdin", nothing)
        said = ledger(*arguments)
        assert (said.status, "there is no terminal to ask at. Add --yes" in said.err) == (1, True)
        assert (rows("SELECT state FROM sms_request ORDER BY id"), rows("SELECT id FROM sms_claimant")) == before
        assert ledger(*arguments, "--yes").status == 0
    assert (rows("SELECT state FROM sms_request ORDER BY id"), rows("SELECT id FROM sms_claimant")) != before
