from __future__ import annotations

import pytest
from support.sending import claimant, people

from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, Chunk, Outcome
from airflow_provider_sms.ledger.recovery import UnrecordedOutcomes, write_file

EVENT = 9_007_199_254_740_993


@pytest.fixture
def left(store, tmp_path):
    """Let an attempt end before its ledger had the outcomes of two requests; return the file that it left."""

    def left(campaign="spring", **changes):
        ledger = CampaignLedger(store, campaign, claimant(**changes))
        chunks = [Chunk([m.key for m in some], [m.destination for m in some]) for some in (people(3), people(2, 3))]
        first, second = (claim.request_id for claim in ledger.commit(chunks=chunks, claim_seconds=60.0))
        taken = Outcome(first, ACCEPTED, event_id=EVENT, messages=3, parts=3, cost="3", response="{}", chunk=chunks[0])
        outcomes = [taken, Outcome(second, NOT_SENT, http_status=429)]
        return write_file(tmp_path / "left", UnrecordedOutcomes(ledger.origin(), outcomes))

    return left


def test_a_file_is_recorded_and_removed(ledger, left, rows):
    """Nobody is asked. The command says what the ledger has now."""
    path = left()
    said = ledger("recover", path)
    assert (said.status, said.out) == (0, "")
    assert said.err == (
        f"Recorded from {path}: campaign spring, attempt 1 of task t of DAG d, run r\n"
        f"  Request 1 is accepted, event id {EVENT}\n"
        "  Request 2 is not sent\n"
        "If a task failed because of these requests, clear it now in Airflow\n"
    )
    assert rows("SELECT id, state FROM sms_request ORDER BY id") == [(1, "accepted"), (2, "not_sent")]
    assert not path.exists()


def test_a_file_that_does_not_fit_keeps_no_other_one_from_being_recorded(ledger, left, rows, tmp_path):
    """It stays, with a reason, and the exit status is 1."""
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{")
    path = left()
    said = ledger("recover", damaged, tmp_path / "nowhere.json", path)
    assert said.status == 1
    assert f"{damaged} is not recorded. {damaged} is damaged, or is not a recovery file." in said.err
    assert "nowhere.json cannot be read: No such file or directory" in said.err
    assert "Request 1 is accepted" in said.err
    assert said.err.endswith("2 files could not be recorded\n")
    assert (damaged.exists(), path.exists()) == (True, False)


def test_a_file_that_cannot_be_removed_keeps_no_other_one_from_being_recorded(ledger, left, rows, monkeypatch):
    """As one of another user: it is recorded, and the command says that it is still there."""
    stays, goes = left(), left("summer")
    real = type(stays).unlink

    def unlink(path, **options):
        if path == stays:
            raise PermissionError(13, "Permission denied")
        real(path, **options)

    monkeypatch.setattr(type(stays), "unlink", unlink)
    said = ledger("recover", stays, goes)
    assert (said.status, stays.exists(), goes.exists()) == (0, True, False)
    assert f"{stays} is recorded, and cannot be removed: Permission denied. It holds numbers\n" in said.err
    assert rows("SELECT DISTINCT state FROM sms_request ORDER BY state") == [("accepted",), ("not_sent",)]


def test_a_file_of_another_ledger_is_refused(ledger, left, store, rows):
    """The error says which ledger it is of, and nothing is recorded."""
    path = left()
    with store.write(0) as connection:
        connection.exec_driver_sql("UPDATE sms_claimant SET run_id = 'other'")
    said = ledger("recover", path)
    assert said.status == 1
    assert f"These outcomes are of {store.description}, campaign spring" in said.err
    assert "does not have the attempt that wrote them" in said.err
    assert rows("SELECT state FROM sms_request ORDER BY id") == [("claimed",), ("claimed",)]
    assert path.exists()


def test_a_name_controls_no_terminal(ledger, left):
    """A campaign's name is another person's words."""
    assert "\x1b" not in ledger("recover", left("spring\x1b[2J")).err


def test_a_command_without_a_file_is_wrong_usage(ledger, airflow_home):
    """There is nothing to record."""
    assert ledger("recover").status == 2
