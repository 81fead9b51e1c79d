from __future__ import annotations

import pytest
from support.sending import people

from airflow_provider_sms.hooks.connection import client_settings, stored_connection
from airflow_provider_sms.ledger.model import UNKNOWN
from airflow_provider_sms.sending import settle
from airflow_provider_sms.sending.evidence import Verdict

OTHER = "0" * 32
"""The key of an account to which no connection leads."""
WORDS = "The balance fell by 3: it was taken."


@pytest.fixture
def account(sms_default):
    """The account that the connection ``sms_default`` leads to."""
    connection = stored_connection("sms_default")
    return client_settings(connection, connection.extra_dejson).account


@pytest.fixture(autouse=True)
def judged(monkeypatch):
    """Judge each request to be charged, and return the readings by which it was judged."""
    seen = []

    def judge(readings, requests):
        seen.extend(readings)
        return {each.id: Verdict("charged", WORDS) for each in requests}

    monkeypatch.setattr(settle, "judge", judge)
    return seen


@pytest.fixture
def lost(store, sent, account):
    """Lose the response to a request that was sent long ago with ``sms_default``."""

    def lost(first=0, **changes):
        named = {"account": account, "conn_id": "sms_default", "at": 1_700_000_000.0, **changes}
        return sent(people(3, first), UNKNOWN, **named)

    return lost


def test_the_balance_is_read_and_what_it_tells_is_noted(ledger, lost, sent, rows, account, judged, sandbox):
    """Once for the unknown requests of an account, of whatever campaign, if that is asked for; it closes none."""
    sent(people(1, 20))
    assert ledger("unknown", "--read-balance", "-o", "json").data == []
    lost()
    lost(10, campaign="autumn", try_number=2)
    assert ledger("unknown", "-o", "json").data[0]["evidence"] == ""
    assert sandbox.state.requests == []
    before = rows("SELECT id, state, reason FROM sms_request ORDER BY id")
    said = ledger("unknown", "--read-balance", "-o", "json")
    assert (said.status, said.err.splitlines()[0]) == (0, "The account of connection sms_default: 100,000.00 credits")
    assert WORDS in said.err
    assert [row["evidence"] for row in said.data] == ["charged"] * 2
    ((key, amount),) = rows("SELECT account, amount FROM sms_balance")
    assert (key, float(amount)) == (account, 100_000.0)
    (reading,) = judged
    assert (reading.amount, reading.asked_at <= reading.read_at) == (100_000, True)
    assert rows("SELECT id, state, reason FROM sms_request ORDER BY id") == before
    assert rows("SELECT count(decided_at) FROM sms_request") == [(0,)]
    assert [each.operation for each in sandbox.state.requests] == ["balance"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"account": OTHER, "conn_id": None},
            "Airflow has no connection None, or the ledger does not know the account",
        ),
        ({"account": OTHER, "conn_id": "gone"}, "Airflow has no connection 'gone'"),
        ({"account": OTHER, "conn_id": "broken"}, "Connection 'broken' has no password"),
        ({"account": OTHER}, "connection 'sms_default' leads to another account now, by its address, login or"),
    ],
)
def test_an_account_that_cannot_be_asked_is_named(ledger, lost, rows, monkeypatch, changes, words):
    """The others are read all the same; nothing is noted of requests whose account was not asked."""
    monkeypatch.setenv("AIRFLOW_CONN_BROKEN", '{"conn_type": "sms", "host": "https://rest.example.com"}')
    other = lost()
    request = lost(10, try_number=2, **changes)
    said = ledger("unknown", "--read-balance", "-o", "json")
    assert (said.status, f"No balance was read for request {request}: {words}" in said.err) == (0, True)
    assert {row["request"]: row["evidence"] != "" for row in said.data} == {str(other): True, str(request): False}
    assert rows("SELECT count(*) FROM sms_balance") == [(1,)]


def test_a_service_that_tells_no_balance_is_named(ledger, lost, sandbox, rows):
    """The list comes all the same."""
    request = lost()
    sandbox.state.set_faults([{"kind": "status", "status": 500, "on": "balance", "times": 9}])
    said = ledger("unknown", "--read-balance", "-o", "json")
    assert (said.status, said.data[0]["evidence"]) == (0, "")
    assert f"No balance was read for request {request}: " in said.err
    assert rows("SELECT count(*) FROM sms_balance") == [(0,)]


def test_the_balance_of_a_post_paid_account_tells_nothing(ledger, lost, sms_default, rows):
    """It is recorded, so that nobody has to ask again."""
    lost()
    sms_default(extra={"billing": "postpaid"})
    said = ledger("unknown", "--read-balance")
    assert (said.status, "post-paid: its balance tells nothing" in said.err) == (0, True)
    assert rows("SELECT amount FROM sms_balance") == [(None,)]
