from __future__ import annotations

from collections import Counter
from contextlib import closing

import pytest
from sqlalchemy import create_engine
from support.faults.verdict import Figures, judge, read_ledger, worst
from support.keys import request_of
from support.sending import claimant, people

from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import Outcome

EXPECTED = {bytes([n]) * 16: (f"2782000000{n}", "Hi") for n in range(4)}
KEYS = list(EXPECTED)
SENT = list(EXPECTED.values())
NOTHING = dict.fromkeys(("rows", "accepted", "unknown", "not_sent", "invalid", "duplicate", "suppressed"), 0)
SUMMARY = {**NOTHING, "rows": 4, "accepted": 2, "unknown": 1, "already_sent": 1}


def true_case():
    """Three were sent, of whom one is unknown, as is the fourth, to whom nothing went."""
    states = ["accepted", "accepted", "unknown", "unknown"]
    return Counter(SENT[:3]), dict(zip(KEYS, states, strict=True))


def test_the_truth_passes():
    """Everybody sent once and accepted, or unknown: nothing is wrong, and the unknown are counted."""
    witness, ledger = true_case()
    assert judge(witness, ledger, EXPECTED, summary={**SUMMARY, "unknown": 2, "already_sent": 0}) == Figures(
        cases=1, unknown=2
    )


@pytest.mark.parametrize(
    ("resumed", "states", "sent", "wrong"),
    [
        (True, "accepted accepted unknown unknown", [0, 1, 2, 2], {"duplicates": 1}),
        (True, "accepted accepted unknown unknown", [0, 0, 0, 1], {"duplicates": 2}),
        (True, "accepted accepted accepted unknown", [0, 1], {"wrongly_accepted": 1}),
        (True, "accepted accepted unknown -", [0, 1, 2, 3], {"wrongly_not_sent": 1}),
        (True, "accepted accepted unknown not_sent", [0, 1, 3], {"wrongly_not_sent": 1}),
        (True, "accepted accepted unknown -", [0, 1], {"lost": 1}),
        (True, "accepted accepted unknown claimed", [0, 1, 3], {"lost": 1}),
        (True, "accepted accepted unknown claimed", [0, 1], {"lost": 1}),
        (True, "accepted accepted unknown nonsense", [0, 1], {"lost": 1}),
        (False, "accepted claimed claimed -", [0, 1], {}),
        (False, "accepted claimed claimed -", [0, 0], {"duplicates": 1}),
        (False, "accepted claimed claimed -", [1], {"wrongly_accepted": 1}),
        (False, "accepted claimed claimed -", [0, 3], {"wrongly_not_sent": 1}),
    ],
)
def test_every_lie_of_the_ledger_is_caught(resumed, states, sent, wrong):
    """What it says of a message must be what the witness holds; before the resume, claims are open and people wait."""
    ledger = {key: state for key, state in zip(KEYS, states.split(), strict=True) if state != "-"}
    figures = judge(Counter(SENT[n] for n in sent), ledger, EXPECTED, resumed=resumed)
    assert figures == Figures(cases=int(resumed), unknown=states.split().count("unknown"), **wrong)
    assert figures.broken == sum(wrong.values())


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"rows": 5, "unknown": 2, "already_sent": 0}, {"lost": 1}),
        ({"unknown": 3, "already_sent": 0, "not_sent": -1}, {"lost": 1}),
        ({"accepted": 3}, {"lost": 1, "wrongly_accepted": 1}),
        ({"already_sent": 2, "unknown": 0}, {"wrongly_accepted": 1}),
        ({"unknown": 0, "already_sent": 0, "not_sent": 2}, {"wrongly_not_sent": 1}),
    ],
)
def test_every_lie_of_the_summary_is_caught(changes, wrong):
    """Rows are the sum of the counts, and no more are called sent, or not sent, than the witness has or lacks."""
    _, ledger = true_case()
    summary = {**SUMMARY, **changes}
    assert judge(Counter(SENT[:3]), ledger, EXPECTED, summary=summary) == Figures(cases=1, unknown=2, **wrong)


def test_what_nobody_asked_for_is_caught():
    """A text that is not the table's, and a claim of a message that is not in it, are wrong."""
    witness, ledger = true_case()
    assert judge(witness + Counter([(SENT[3][0], "Another text")]), ledger, EXPECTED).broken == 1
    assert judge(witness, {**ledger, b"?" * 16: "accepted"}, EXPECTED).broken == 1
    assert judge(witness + Counter([("27830000000", "Hi")]), ledger, EXPECTED).broken == 0


def test_a_case_judged_twice_counts_once():
    """What was wrong in the middle and is wrong in the end is one wrong; what was wrong only once is not forgotten."""
    looks = [Figures(duplicates=4, lost=1), Figures(cases=1, duplicates=4, unknown=2)]
    assert worst(looks) == Figures(cases=1, duplicates=4, lost=1, unknown=2)


def test_the_ledger_is_read_as_it_stands(ledgers):
    """Each message has the state of the request that holds it now, in its own campaign; a free one is missing."""
    messages = people(4)
    with closing(ledgers()) as store:
        ledger = CampaignLedger(store, "c", claimant())
        claims = ledger.commit(chunks=[request_of([m.key], [m.destination]) for m in messages], claim_seconds=10)
        states = ("accepted", "unknown", "not_sent")
        outcomes = [Outcome(claim.request_id, state) for claim, state in zip(claims, states, strict=False)]
        ledger.commit(outcomes=outcomes)
        other = CampaignLedger(store, "another", claimant())
        other.commit(chunks=[request_of([b"x" * 16], ["27820000000"])], claim_seconds=10)
    expected = {messages[0].key: "accepted", messages[1].key: "unknown", messages[3].key: "claimed"}
    engine = create_engine(ledgers.url)
    assert read_ledger(engine, "c") == expected
    engine.dispose()
