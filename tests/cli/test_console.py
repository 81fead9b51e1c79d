from __future__ import annotations

import json
import time

import pytest
import yaml
from support.sending import people

from airflow_provider_sms.cli.console import printable
from airflow_provider_sms.ledger.model import UNKNOWN

LONG_AGO = time.time() - 100 * 86_400


HOSTILE = "[red]spring:bomb:\x1b[2K\x1b]0;title\x07\x9b1A\u202egnirps\u2066\rold\nForgotten: nothing\x7f"
"""A style and an emoji; it erases its line, sets the title, goes up, turns the text around and begins a line."""


def controls_of(text):
    """Return the characters of a text that a terminal does not print, except the ends of lines."""
    return {c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u2066")}


@pytest.mark.parametrize("output", ["table", "plain", "json", "yaml"])
def test_no_name_or_reason_controls_the_terminal(ledger, store, sent, output):
    """Escapes reach neither stdout nor stderr; a program reads the whole name from JSON and YAML."""
    sent(people(1), UNKNOWN, campaign=HOSTILE, reason=HOSTILE, dag_id=HOSTILE)
    for arguments in (("unknown",), ("show", HOSTILE), ("who", people(1)[0].destination)):
        said = ledger(*arguments, "-o", output)
        assert said.status == 0
        assert controls_of(said.out + said.err) == set()
        assert "\nForgotten" not in said.out
    read = {"json": json.loads, "yaml": yaml.safe_load}.get(output)
    if read is None:
        assert r"[red]spring:bomb:\x1b[2K" in said.out
    else:
        assert read(said.out)[0]["campaign"] == HOSTILE


def test_no_name_controls_the_terminal_before_a_question(ledger, sent, at_terminal, monkeypatch):
    """What is printed before and in a question, after it, and in an error has escapes in place of controls."""
    sent(people(1), campaign=HOSTILE, dag_id=HOSTILE, at=LONG_AGO)
    request = sent(people(1, 5), UNKNOWN, campaign=HOSTILE + "2", reason=HOSTILE, dag_id=HOSTILE)
    at_terminal("y\n")
    commands = [
        ("purge", "--older-than", "90"),
        *((act, HOSTILE + "2") for act in ("pause", "pause", "resume")),
        ("resolve", "--campaign", HOSTILE + "2", "--as", "accepted"),
        ("resolve", request, "--as", "not-sent"),
        ("adopt", "dag", "task", HOSTILE),
        ("adopt", HOSTILE, "t", "r"),
        ("show", HOSTILE + "3"),
    ]
    for command in commands:
        said = ledger(*command)
        assert controls_of(said.err) == set()
        assert "\nForgotten: nothing" not in said.err


def test_control_characters_are_escaped():
    """C0, DEL, C1, changes of direction, separators and halves of characters; what is printed stays as it is."""
    assert printable("a\x00\t\x1b\x7f\x9b\u202e\u2067\u200f\u2028\ud800") == (
        r"a\x00\t\x1b\x7f\x9b\u202e\u2067\u200f\u2028\ud800"
    )
    assert printable("Zoë 👩 ไทย \\x1b") == "Zoë 👩 ไทย \\x1b"


@pytest.mark.parametrize("answer", ["n\n", "\n", "", "yess\n"])
def test_nothing_but_yes_is_yes(ledger, sent, holders, at_terminal, rows, answer):
    """No, nothing, the end of input or another word: status 1, and the ledger is as it was."""
    request = sent(people(3), UNKNOWN)
    at_terminal(answer)
    said = ledger("resolve", request, "--as", "not-sent")
    assert (said.status, said.err.endswith("Nothing was done\n")) == (1, True)
    assert (holders(people(3)), rows("SELECT id FROM sms_request WHERE decided_at > 0")) == ({UNKNOWN}, [])


@pytest.mark.parametrize("command", ["resolve", "adopt", "purge"])
def test_without_a_terminal_a_script_must_say_yes(ledger, sent, rows, monkeypatch, command):
    """Nobody can be asked: without ``--yes`` nothing is done, with it everything is."""
    request = sent(people(3), UNKNOWN)
    sent(people(3), campaign="old", at=LONG_AGO)
    arguments = {
        "resolve": ("resolve", request, "--as", "accepted"),
        "adopt": ("adopt", "d", "t", "r"),
        "purge": ("purge", "--older-than", "90"),
    }[command]
    before = rows("SELECT state FROM sms_request ORDER BY id"), rows("SELECT id FROM sms_attempt")
    with open("/dev/null") as nothing:  # noqa: PTH123  # a device
        monkeypatch.setattr("sys.stdin", nothing)
        said = ledger(*arguments)
        assert (said.status, "there is no terminal to ask at. Add --yes" in said.err) == (1, True)
        assert (rows("SELECT state FROM sms_request ORDER BY id"), rows("SELECT id FROM sms_attempt")) == before
        assert ledger(*arguments, "--yes").status == 0
    assert (rows("SELECT state FROM sms_request ORDER BY id"), rows("SELECT id FROM sms_attempt")) != before
