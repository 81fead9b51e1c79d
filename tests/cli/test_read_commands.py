from __future__ import annotations

import io

import pytest
from support.sending import claimant, people

from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.attempts import note_progress, register
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.campaigns import pause
from airflow_provider_sms.ledger.model import NOT_SENT, UNKNOWN
from airflow_provider_sms.monitoring import campaigns


def test_show_shows_the_state_of_a_campaign(ledger, sent):
    """Messages by state, what the service left out apart, parts, cost, and the attempts that count; as `list` does."""
    sent(people(3), at=1_700_000_000.0, taken=2)
    sent(people(2, 10), UNKNOWN, at=1_700_000_060.0, try_number=2)
    sent(people(1, 20), None)
    sent(people(4, 30), NOT_SENT)
    said = ledger("show", "spring", "-o", "json")
    (found,) = said.data
    assert (said.status, found.pop("created_at")[:2]) == (0, "20")
    assert found == {
        "campaign": "spring",
        "state": "sending",
        "accepted": "2",
        "left_out": "1",
        "unknown": "2",
        "not_sent": "0",
        "under_way": "1",
        "unknown_requests": "1",
        "parts": "3",
        "cost": "at least 1.10, and what 1 request cost is not known",
        "paused": [],
        "sent_by": ["Attempt 1 of task t of DAG d in run r: failed"],
    }
    (listed,) = ledger("list", "-o", "json").data
    assert [listed[name] for name in ("state", "accepted", "unknown")] == ["sending", "2", "2"]


def test_show_says_why_a_campaign_needs_attention(ledger, store):
    """As its page does: which attempt failed or was left with unsent rows, and what to do."""
    note_progress(store, "spring", register(store, claimant()), "ended", not_sent=3)
    said = ledger("show", "spring")
    assert said.err == "3 rows not sent. The task's log says why; once that is solved, clear the task to send them.\n"
    assert "needs attention" in said.out
    note_progress(store, "spring", register(store, claimant(try_number=2)), "ended", not_sent=0)
    said = ledger("show", "spring", "-o", "json")
    assert (said.err, said.data[0]["state"]) == ("", "complete")


def test_unknown_lists_what_a_person_needs(ledger, sent):
    """Request, campaign, messages, when in UTC, and why; only those that are unknown, of all campaigns or of one.

    With ``--exit-code``, unknown requests are status 3, which no failure has, for monitoring.
    """
    sent(people(1))
    request = sent(people(3, 10), UNKNOWN, at=1_700_000_000.0, map_index=4, try_number=2)
    sent(people(1), campaign="other")
    said = ledger("unknown", "--exit-code", "--campaign", "other", "-o", "json")
    assert (said.status, said.data) == (0, [])
    sent(people(1, 20), UNKNOWN, campaign="other")
    said = ledger("unknown", "--exit-code", "-o", "json")
    assert (said.status, len(said.data)) == (3, 2)
    said = ledger("unknown", "--campaign", "spring", "-o", "json")
    assert (said.status, said.err) == (0, "")
    assert said.data == [
        {
            "request": str(request),
            "campaign": "spring",
            "messages": "3",
            "claimed_at": "2023-11-14T22:13:20+00:00",
            "evidence": "",
            "why": "read timeout",
        }
    ]


def test_unknown_shows_what_the_balance_tells(ledger, sent, store):
    """A verdict for each request, and below the table each sentence once; programs get them in parts."""
    one, two, three, _ = (sent(people(1, 10 * place), UNKNOWN) for place in range(4))
    both = KeptEvidence("charged", "The balance fell by 2: both were taken.", 1_700_000_000.0)
    note_evidence(store, "spring", {one: both, two: both, three: KeptEvidence("not_charged", "It was not.", 1.0)})
    said = ledger("unknown")
    assert [said.out.count(word) for word in ("not charged", "charged", "The balance")] == [1, 3, 0]
    assert said.err == f"What the balance tells:\n  {both.words}\n  It was not.\n"
    assert [row["evidence"] for row in ledger("unknown", "-o", "json").data][::3] == ["charged", ""]


def test_list_shows_campaigns_and_their_states(ledger, sent, store, monkeypatch):
    """Newest first, with counts; by the state that the pages show, and cut with a word about it."""
    sent(people(2), campaign="old")
    sent(people(3, 10), UNKNOWN, campaign="spring")
    sent(people(1, 20), campaign="paused")
    pause(store, "paused", "ann")
    said = ledger("list", "-o", "json")
    assert (said.status, said.err) == (0, "")
    assert [(row["campaign"], row["state"], row["accepted"], row["unknown"]) for row in said.data] == [
        ("paused", "paused", "1", "0"),
        ("spring", "needs attention", "0", "3"),
        ("old", "complete", "2", "0"),
    ]
    monkeypatch.setattr(campaigns, "WINDOWS", 1)  # what a page of the list reads is no bound of the command
    monkeypatch.setattr(campaigns, "WINDOW", 2)
    assert ledger("list", "-o", "json").data == said.data
    few = ledger("list", "--limit", "1", "-o", "json")
    assert [row["campaign"] for row in few.data] == ["paused"]
    assert few.err == "There may be more than the latest 1: list them with --limit\n"


def test_who_says_when_a_number_was_texted_and_by_what(ledger, sent, somebody):
    """Time, state, campaign and who sent it; a number may be written as a task reads it."""
    sent(people(3), at=1_700_000_000.0)
    sent(people(3, 10))
    said = ledger("who", f"+{somebody[:2]} {somebody[2:]}", "-o", "json")
    assert (said.status, said.err) == (0, "")
    assert said.data == [
        {
            "claimed_at": "2023-11-14T22:13:20+00:00",
            "state": "accepted",
            "campaign": "spring",
            "task": "d.t",
            "run_id": "r",
        }
    ]
    for region in ("ZA", "za"):
        assert ledger("who", f"0{somebody[2:]}", "--default-region", region, "-o", "json").data == said.data
    said = ledger("who", "27829999999")
    assert (said.status, said.out) == (1, "")
    assert ("has no message to this number" in said.err, "27829999999" in said.err) == (True, False)


def test_who_reads_a_number_from_stdin(ledger, sent, somebody, monkeypatch, at_terminal):
    """As ``-``, so that the number is in no shell history; at a terminal the command asks for it."""
    sent(people(1))
    monkeypatch.setattr("sys.stdin", io.StringIO(f" +{somebody}\nmore"))
    said = ledger("who", "-", "-o", "json")
    assert (said.status, len(said.data), said.err) == (0, 1, "")
    at_terminal(f"+{somebody}\n")
    said = ledger("who", "-", "-o", "json")
    assert (len(said.data), said.err) == (1, "Number: ")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    said = ledger("who", "-")
    assert (said.status, said.err) == (1, "There is no number on stdin\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("who", "0820000001"), "no country code"),
        (("who", "Anna 0820000001"), "letters or signs"),
        (("who", "0820000001", "--default-region", "XX"), "XX"),
        (("forget", "08200000012345", "--default-region", "ZA"), "This number cannot be read"),
    ],
)
def test_what_is_no_number_is_refused(ledger, file_store, arguments, words):
    """The reason is that of a task's check, without what was written; nobody is asked."""
    said = ledger(*arguments)
    assert (said.status, said.out, words in said.err, "0820000001" in said.err) == (1, "", True, False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "sprign"),
        ("unknown", "--exit-code", "--campaign", "sprign"),
        ("pause", "sprign"),
        ("resume", "sprign"),
        ("resolve", "--campaign", "sprign", "--as", "accepted", "--yes"),
    ],
)
def test_a_missing_campaign_is_named(ledger, sent, arguments):
    """A mistyped name is status 1 and an error with the name, not an empty answer."""
    sent(people(1))
    said = ledger(*arguments)
    assert (said.status, said.out, said.err) == (1, "", "The ledger has no campaign 'sprign'\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "c"),
        ("unknown",),
        ("who", "27820000001"),
        ("resolve", "1", "--as", "accepted", "--yes"),
        ("adopt", "d", "t", "r", "--yes"),
        ("purge", "--older-than", "90", "--yes"),
    ],
)
def test_no_command_makes_a_ledger(ledger, ledger_path, airflow_home, arguments):
    """If there is none, each names the place, and leaves it as it was."""
    said = ledger(*arguments)
    assert (said.status, said.out, f"no ledger at {ledger_path}" in said.err) == (1, "", True)
    assert list(ledger_path.parent.iterdir()) == []


def test_a_ledger_that_cannot_be_read_is_reported_in_a_line(ledger, ledger_path, airflow_home):
    """A file that is no ledger, or a connection that is not there, is status 1 and a line, without a traceback.

    An empty id, that of a variable that is not set, is no default: another ledger may have been meant.
    """
    ledger_path.write_text("Dear diary" * 1000)
    said = ledger("unknown")
    error = "The ledger cannot be read: DatabaseError: file is not a database\n"
    assert (said.status, said.out, said.err) == (1, "", error)
    for conn_id in ("nowhere", ""):
        said = ledger("show", "spring", "--ledger-conn-id", conn_id)
        assert (said.status, said.out, f"no connection '{conn_id}'" in said.err) == (1, "", True)
