from __future__ import annotations

from sqlalchemy import update
from support.told import tell

from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.campaigns import pause, resume
from airflow_provider_sms.ledger.decisions import close_by_balance, resolve
from airflow_provider_sms.ledger.schema import request
from airflow_provider_sms.monitoring.audit_log import audit_log


def test_all_decisions_of_people_are_listed_with_their_names(store, ledger):
    """Decisions about requests, and pauses, the last first."""
    sent, unsent = tell(store, claims=[(3, "unknown"), (4, "unknown")])
    pause(store, "spring", "bob")
    resume(store, "spring", "cid")
    resolve(store, sent, "accepted", "dan")
    resolve(store, unsent, "not_sent", "eve")
    told = [(entry.user, entry.action, entry.subject, entry.people) for entry in audit_log(ledger, 1)]
    assert told == [
        ("eve", "was not sent", f"request {unsent}", 4),
        ("dan", "was sent", f"request {sent}", 3),
        ("cid", "resumed", None, None),
        ("bob", "paused", None, None),
    ]


def test_a_decision_about_groups_counts_no_people(store, ledger):
    """Only the service knows how many people are in a group."""
    (sent,) = tell(store, claims=[(1, "unknown")])
    with store.write(1) as connection:
        connection.execute(update(request).values(kind="group"))
    resolve(store, sent, "accepted", "dan")
    assert [(entry.user, entry.people) for entry in audit_log(ledger, 1)] == [("dan", None)]


def test_what_the_balance_decided_is_listed_with_its_words(store, ledger):
    """It stands in the place of a person; a person's decision has no words, whatever the balance told before."""
    sent, unsent, by_person = tell(store, claims=[(3, "unknown"), (4, "unknown"), (5, "unknown")])
    taken, lost = KeptEvidence("charged", "It was taken.", 1.0), KeptEvidence("not_charged", "It was not taken.", 1.0)
    close_by_balance(store, "spring", {sent: ("accepted", taken)})
    close_by_balance(store, "spring", {unsent: ("not_sent", lost)})
    note_evidence(store, "spring", {by_person: taken})
    resolve(store, by_person, "not_sent", "eve")
    told = [(entry.user, entry.action, entry.subject, entry.why) for entry in audit_log(ledger, 1)]
    assert told == [
        ("eve", "was not sent", f"request {by_person}", None),
        ("balance", "was not sent", f"request {unsent}", "It was not taken."),
        ("balance", "was sent", f"request {sent}", "It was taken."),
    ]
