from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from support.accounts import ANSWERED, LOST, PRICES, Sent, lanes, moments, observed, readings

from airflow_provider_sms.ledger.account import CHARGED, NOT_CHARGED, UNDECIDED
from airflow_provider_sms.sending.evidence import judge

BEFORE, AFTER = (0, 1, 2), (190, 191, 192)
"""Readings of the balance before and after all: when each was asked for, read and there."""
NOW = 200
NEARLY = Decimal("0.001")
MUCH = 777.77
"""Credits, more than all requests of an account cost together."""

fates = st.sampled_from((ANSWERED, LOST))


def wrong(found, sent):
    """Return the verdicts that the truth contradicts."""
    return {
        request_id: evidence
        for request_id, evidence in found.items()
        if evidence.verdict == (NOT_CHARGED if sent[request_id].taken else CHARGED)
    }


@settings(max_examples=100)
@given(lanes(), readings(), moments)
def test_no_verdict_is_wrong(sent, read, now):
    """While nobody else uses an account, no verdict contradicts the truth at any moment, with requests under way."""
    assert wrong(judge(observed(sent, [BEFORE, *read], now)), sent) == {}


@settings(max_examples=100)
@given(lanes(), readings())
def test_no_verdict_is_wrong_once_all_is_settled(sent, read):
    """Nor does one once all is settled; and sums that are told are what the requests cost."""
    found = judge(observed(sent, [BEFORE, *read, AFTER], NOW))
    assert wrong(found, sent) == {}
    for request_id, evidence in found.items():
        assert evidence.amount is None or abs(evidence.amount - Decimal(sent[request_id].cost)) < NEARLY
        assert not evidence.in_part or sent[request_id].taken < sent[request_id].parts


@settings(max_examples=100)
@given(lanes(groups=False), readings(), moments)
def test_what_others_spend_is_noticed(sent, read, spent_at):
    """What others spend, where it is more than requests cost, leaves all undecided that is near."""
    found = judge(observed(sent, [BEFORE, *read, AFTER], NOW, [(spent_at, MUCH)]))
    assert {evidence.verdict for evidence in found.values()} <= {UNDECIDED}


@settings(max_examples=100)
@given(lanes(groups=False), readings(), moments)
def test_what_others_spend_is_no_charge_where_it_is_little(sent, read, spent_at):
    """What others spend, where it is less than half of what any lost request costs, makes no verdict wrong."""
    little = 0.49 * min((each.parts * each.prices[0] for each in sent if each.fate == LOST), default=0)
    assert wrong(judge(observed(sent, [BEFORE, *read, AFTER], NOW, [(spent_at, little)])), sent) == {}


@settings(max_examples=100)
@given(lanes(), readings(), moments)
def test_top_ups_are_noticed(sent, read, topped_up_at):
    """A top-up of more than requests cost makes no verdict wrong, and none says then that a request was not charged."""
    found = judge(observed(sent, [BEFORE, *read, AFTER], NOW, [(topped_up_at, -MUCH)]))
    assert wrong(found, sent) == {}
    then = {found[each].verdict for each in found if sent[each].begin < topped_up_at < sent[each].settled}
    assert then <= {UNDECIDED, CHARGED}


@given(
    st.sampled_from(PRICES[:2]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 9), st.integers(0, 9), fates), max_size=9),
)
def test_one_at_a_time_all_is_decided(prices, steps):
    """Sent one at a time, and the balance read once a lost one is settled, each is decided of which half was taken."""
    sent, read, now = [], [BEFORE], 3
    for before, after, parts, most_taken, fate in steps:
        begin, end = now, now + before + after
        taken = min(parts, most_taken) if 2 * most_taken >= parts else 0
        sent.append(Sent(begin, begin + before, end, end, parts, taken, fate, prices=prices))
        if fate == LOST:
            read.append((end + 1, end + 1, end + 1))
        now = end + 2
    found = judge(observed(sent, read, NOW))
    assert len(found) == [each.fate for each in sent].count(LOST)
    for request_id, evidence in found.items():
        each = sent[request_id]
        assert evidence.verdict == (CHARGED if each.taken else NOT_CHARGED)
        assert evidence.in_part == (0 < each.taken < each.parts)
        assert not each.taken or abs(evidence.amount - Decimal(each.cost)) < NEARLY


@given(
    st.sampled_from(PRICES[:2]),
    st.booleans(),
    st.lists(
        st.tuples(st.integers(3, 9), st.integers(0, 9), st.integers(0, 9), st.integers(1, 9), fates),
        min_size=1,
        max_size=12,
    ),
)
def test_bursts_are_decided(prices, are_taken, steps):
    """Of many at once, those without a response are decided where all of them were taken in whole, or none."""
    sent = [
        Sent(
            begin,
            begin + before,
            begin + before + after,
            begin + before + after,
            parts,
            parts if are_taken or fate == ANSWERED else 0,
            fate,
            prices=prices,
        )
        for begin, before, after, parts, fate in steps
    ]
    found = judge(observed(sent, [BEFORE, AFTER], NOW))
    assert len(found) == [each.fate for each in sent].count(LOST)
    assert {evidence.verdict for evidence in found.values()} <= {CHARGED if are_taken else NOT_CHARGED}


@settings(max_examples=100)
@given(lanes(fates=(ANSWERED,), late=True), st.integers(0, 9), st.integers(0, 20), st.booleans(), readings())
def test_balances_told_late(sent, before, begin, is_taken, read):
    """Responses that tell the balance of when they end cost the verdict of a request that is lost amid them at most."""
    begin += BEFORE[2] + 1
    lost = Sent(begin, begin + before, begin + before, begin + before + 1, 2, 2 * is_taken, LOST)
    assert wrong(judge(observed([*sent, lost], [BEFORE, *read, AFTER], NOW)), [*sent, lost]) == {}
