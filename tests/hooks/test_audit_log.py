from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
from airflow.models.log import Log
from airflow.utils.session import create_session
from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError

from airflow_provider_sms.exceptions import AuditLogError, LedgerError
from airflow_provider_sms.hooks import audit_log
from airflow_provider_sms.hooks.audit_log import (
    audited,
    number_details,
    number_digest,
    record_event,
    seconds_until_allowed,
)

NUMBER = "27820000001"
KEY = "0" * 43 + "="


def refuse():
    """Open a session with a database that is gone."""
    raise OperationalError("INSERT", {"extra": NUMBER}, Exception("no route to db.internal"))


@pytest.fixture
def key(monkeypatch):
    """Set Airflow's Fernet key."""

    def use(key):
        monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", key)

    use(KEY)
    return use


def test_an_event_is_a_row_of_airflows_audit_log(audit_rows):
    """With its user, its DAG and its details as JSON, committed when the call returns."""
    record_event("sms.pause", user="ed", dag_id="reminders", details={"campaign_id": 7})
    record_event("sms.look_up", user="vic", details={})
    assert audit_rows() == [
        ("sms.pause", "ed", "reminders", {"campaign_id": 7}),
        ("sms.look_up", "vic", None, {}),
    ]


def test_an_event_that_cannot_be_recorded_is_an_error(audit_rows, monkeypatch):
    """It says that nothing was done, without the words of the database, which name its host and hold the row."""
    monkeypatch.setattr(audit_log, "create_session", refuse)
    with pytest.raises(AuditLogError, match=r"OperationalError.*Nothing was changed or shown") as raised:
        record_event("sms.pause", user="ed", details={})
    assert "db.internal" not in str(raised.value)
    assert NUMBER not in str(raised.value)


def fail(error, act):
    """Raise an error, after an act has begun if there is one."""
    if act:
        act.begin("reminders")
    raise error


class NotFoundError(Exception):
    """An answer with a status, like those of the pages."""

    status_code = 404
    detail = "no such campaign"


@pytest.mark.parametrize(
    ("error", "event", "reason"),
    [
        (NotFoundError(), "sms.pause.refused", "no such campaign"),
        (LedgerError("no route to db.internal"), "sms.pause.failed", "LedgerError"),
    ],
)
def test_an_act_that_is_not_done_is_recorded_too(audit_rows, error, event, reason):
    """As refused or as failed, after the row that announced it, if it had begun; the error goes on."""
    for begun in (False, True):
        with pytest.raises(type(error)), audited("sms.pause", user="ed", details={"campaign_id": 7}) as act:
            fail(error, act if begun else None)
    ended = {"campaign_id": 7, "reason": reason}
    assert audit_rows() == [
        (event, "ed", None, ended),
        ("sms.pause", "ed", "reminders", {"campaign_id": 7}),
        (event, "ed", "reminders", ended),
    ]


def test_what_is_shown_is_recorded_with_the_act(audit_rows):
    """With the details that became known in between."""
    with audited("sms.look_up", user="ed", details={}) as act:
        act.details["number"] = "2782*****01"
        act.begin()
        act.note_shown(requests=[3])
    number = {"number": "2782*****01"}
    assert audit_rows() == [
        ("sms.look_up", "ed", None, number),
        ("sms.look_up.shown", "ed", None, {**number, "requests": [3]}),
    ]


def test_an_act_is_refused_in_its_own_words_if_its_end_cannot_be_recorded(audit_rows, monkeypatch, caplog):
    """The web server's log has it then."""
    monkeypatch.setattr(audit_log, "create_session", refuse)
    with pytest.raises(NotFoundError), audited("sms.pause", user="ed", details={}):
        raise NotFoundError
    assert "sms.pause.refused by ed is not in the audit log" in caplog.text


def test_a_number_is_in_the_log_masked_and_as_a_digest(key):
    """An auditor finds the look-ups of a number by its digest; the log does not hold the number."""
    details = number_details(NUMBER)
    assert details["number"] == "2782*****01"
    assert details["number_digest"] == number_digest("+27 82 000 0001")
    assert len(details["number_digest"]) == 32
    assert number_digest("27820000002") != details["number_digest"]
    assert NUMBER not in json.dumps(details)


def test_the_digest_depends_on_airflows_key(key):
    """Whoever has the log and not the key cannot try all numbers; the first of several keys counts."""
    digest = number_digest(NUMBER)
    other = "1" * 43 + "="
    key(f"{KEY},{other}")
    assert number_digest(NUMBER) == digest
    key(f"{other},{KEY}")
    assert number_digest(NUMBER) != digest


def test_without_a_key_there_is_no_digest(key):
    """A digest without a key would tell the number to whoever tries all numbers."""
    key("")
    assert number_details(NUMBER) == {"number": "2782*****01", "number_digest": ""}


def test_events_of_a_user_are_counted(audit_rows):
    """Beyond the limit a user waits until enough of the rows are too old to count; other users do not."""

    def wait(user="vic"):
        return seconds_until_allowed("sms.look_up", user=user, limit=2, seconds=60)

    for _ in range(2):
        record_event("sms.look_up", user="vic", details={})
        assert wait() == 0
    record_event("sms.look_up", user="vic", details={})
    assert 59 < wait() <= 60
    assert wait("ed") == 0
    with create_session() as session:
        first, second, _ = session.execute(select(Log.id).order_by(Log.id)).scalars()
        now = datetime.now(timezone.utc)
        session.execute(update(Log).where(Log.id.in_([first, second])).values(dttm=now - timedelta(seconds=40)))
    assert 19 < wait() <= 20
    with create_session() as session:
        session.execute(update(Log).where(Log.id == first).values(dttm=now - timedelta(seconds=61)))
    assert wait() == 0
