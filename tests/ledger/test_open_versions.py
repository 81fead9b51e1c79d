"""Ledgers of each version, ``tests/ledgers/version_5.sql`` and so on: the head of each file says what it holds."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from support.keys import message_keys
from support.sending import claimant

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.approvals import PlanExtent, asked, latest_approval
from airflow_provider_sms.ledger.decisions import RESEND, answer, questions, resolve, to_resend
from airflow_provider_sms.ledger.frequency_cap import FrequencyCap
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.pauses import pause_of
from airflow_provider_sms.ledger.request_queries import texted, unknown_requests
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.ledger.statistics import status
from airflow_provider_sms.messages.keys import group_key
from airflow_provider_sms.messages.outgoing import Outgoing
from airflow_provider_sms.messages.subset import MessageSubset

DUMPS = sorted((Path(__file__).parents[1] / "ledgers").glob("version_*.sql"))
SURE, LOST, LAPSED, NEW = (0, 1, 2, 9, 10), (3, 4), (7, 8), (5, 6, 11, 12)
FOR_EVER = FrequencyCap("marketing", 100 * 365 * 86_400.0)


@pytest.fixture(params=DUMPS, ids=lambda path: path.stem)
def path(request, tmp_path):
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.executescript(request.param.read_text())
    return tmp_path / "ledger.db"


@pytest.fixture
def store(path):
    with closing(open_sqlite(path)) as store:
        yield store


@pytest.fixture
def clock():
    """The time of the world, long after the ledger's last claim."""
    return time.time


def numbers(people):
    return [str(27_820_000_000 + n) for n in people]


def everybody():
    """People 0 to 12, with the text and the keys that the ledger knows them by."""
    to = numbers(range(13))
    return [Outgoing(key, number, "Hi") for key, number in zip(message_keys(to, ["Hi"] * 13), to, strict=True)]


def send(sender):
    """Send to everybody, and count what became of them."""
    sender.run([everybody()])
    tally = sender.counts
    names = ("accepted", "unknown", "not_sent", "already_sent", "capped")
    return {name: getattr(tally, name) for name in names if getattr(tally, name)}


def statements(path):
    """Read the tables and indexes of a ledger as SQLite keeps them."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {" ".join(statement.split()) for (statement,) in rows}


def test_there_is_a_ledger_of_each_version():
    """A new version of the schema comes with a ledger that it wrote, which later versions must upgrade."""
    versions = [int(path.stem.removeprefix("version_")) for path in DUMPS]
    assert versions == list(range(5, SCHEMA_VERSION + 1))


def test_its_tables_are_those_of_a_new_ledger(store, path, tmp_path):
    """A ledger that is made now has the same tables, types and indexes: what differs, opening it has upgraded."""
    open_sqlite(tmp_path / "new.db").close()
    assert statements(path) == statements(tmp_path / "new.db")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM sms_ledger_version").fetchall() == [(SCHEMA_VERSION,)]


def test_a_current_ledger_is_what_the_schema_says(tmp_path):
    """The last of these ledgers needs no upgrade: it has every table, column and index of today's schema."""
    with closing(sqlite3.connect(tmp_path / "last.db")) as connection:
        connection.executescript(DUMPS[-1].read_text())
    open_sqlite(tmp_path / "new.db").close()
    assert statements(tmp_path / "last.db") == statements(tmp_path / "new.db")


def test_it_says_what_was_sent(store):
    """Messages, requests, money and people's decisions are counted as they were; a claim long past is unknown."""
    found = status(store, "spring")
    assert (found.counts.accepted, found.counts.unknown) == (5, 4)
    # All messages of a third unknown request, number 4, were sent again: nobody has to decide about it.
    assert found.requests == {ACCEPTED: 3, UNKNOWN: 2, NOT_SENT: 1}
    assert (found.counts.cost, found.counts.parts, found.decisions) == (Decimal("6.0"), 4, 1)
    assert [row.request_id for row in unknown_requests(store)] == [2, 7]
    assert [row.request_id for row in texted(store, "27820000009")] == [4, 6]


def test_it_is_sent_on_from(sender, enter, service, store):
    """A later try posts to those who were never texted, and to nobody else."""
    assert send(sender(enter(3, campaign="spring"))) == {"accepted": 4, "already_sent": 5, "unknown": 4}
    assert sorted(service.taken) == sorted(numbers(NEW))
    counts = status(store, "spring").counts
    assert (counts.accepted, counts.unknown) == (9, 4)


def test_unknown_messages_are_sent_again_where_that_is_asked_for(sender, enter, service):
    """With ``resend`` the unknown and the lapsed are posted once more, and the accepted ones are not."""
    assert send(sender(enter(3, campaign="spring"), resend_unknown=True)) == {"accepted": 8, "already_sent": 5}
    assert sorted(service.taken) == sorted(numbers((*NEW, *LOST, *LAPSED)))


@pytest.mark.parametrize(("state", "posted"), [(ACCEPTED, NEW), (NOT_SENT, (*NEW, *LOST))])
def test_its_unknown_request_is_resolved(sender, enter, service, store, state, posted):
    """What a person says of the unknown request decides whether its people are posted to."""
    assert resolve(store, 2, state, "ann") == 2
    with pytest.raises(InputError, match="is not unknown"):
        resolve(store, 2, state, "ann")
    send(sender(enter(3, campaign="spring")))
    assert sorted(service.taken) == sorted(numbers(posted))


def test_its_question_is_answered(sender, enter, service, store):
    """The question that the second try asked is open still, and its answer is obeyed."""
    who = claimant(2)
    assert [(each.request_id, each.messages) for each in questions(store, who)] == [(2, 2)]
    assert answer(store, who, RESEND, "ann") == 1
    assert to_resend(store, "spring", who) == {2}
    send(sender(enter(3, campaign="spring"), resend_requests=to_resend(store, "spring", claimant(3))))
    assert sorted(service.taken) == sorted(numbers((*NEW, *LOST)))


def test_its_approval_and_pauses_hold(store):
    """An approval is on record, though it is asked for again; a pause that was resumed is over, the other one holds."""
    approval = latest_approval(store, "spring")
    nobody = np.array([], np.uint64)
    assert not approval.allows(PlanExtent("0123456789ab", 12, MessageSubset.of(nobody, nobody)))
    assert (approval.decided_by, approval.cost) == ("ann", Decimal(18))
    assert [(each.plan_id, each.messages) for each in asked(store, claimant(1))] == [("0123456789ab", 12)]
    assert (pause_of(store, "spring"), pause_of(store, "autumn").paused_by) == (None, "ann")


def test_its_contact_group_is_known(sender, enter, service):
    """Another campaign of the group texts those alone whom it has not texted, nor may have."""
    assert send(sender(enter(campaign="summer", cap=FOR_EVER))) == {"accepted": 4, "capped": 9}
    assert sorted(service.taken) == sorted(numbers(NEW))


def test_its_groups_are_not_texted_again(enter):
    """The text to a group is found by its key, with the answer."""
    key = group_key("All hands", ["staff"])
    ledger = enter(2, campaign="notices", task_id="group")
    assert (ledger.holders([key])[key].state, ledger.responses.to(key)[:14]) == (ACCEPTED, '{"Cost": 10.5,')
