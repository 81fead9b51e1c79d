from __future__ import annotations

from decimal import Decimal

import pytest
from support.sending import chunk_of, claimant, people

from airflow_provider_sms.ledger import balances
from airflow_provider_sms.ledger.account import Account, BilledRequest, KeptEvidence, Reading
from airflow_provider_sms.ledger.balances import lost_lately, note_evidence, read_histories, record_reading
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import close_by_balance, resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.ledger.purge import old_campaigns, purge
from airflow_provider_sms.ledger.requests import named_requests, unknown_requests
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.sending.settle import weigh

KEY, OTHER = "a" * 32, "b" * 32
CLAIM_SECONDS = 60.0
START = 1_000_000.0
HOUR = 3600.0
PROOF = KeptEvidence("charged", "The balance fell by 3 more than the responses account for.", START)
DOUBT = KeptEvidence("undecided", "No balance is known after it.", START)


class Campaign:
    """A campaign of an account; each request has two people and three SMS parts, at 2 credits a part."""

    def __init__(self, store, clock, name="c", key=KEY, kind="bulk", price=2):
        account = Account(key, Prices(price).total)
        self.clock = clock
        self.ledger = CampaignLedger(store, name, claimant(), clock=clock, kind=kind, account=account)
        self.claims = 0

    def claim(self, parts=(1, 2)):
        messages = people(2, 2 * self.claims)
        self.claims += 1
        return self.ledger.commit(chunks=[chunk_of(messages, parts)], claim_seconds=CLAIM_SECONDS)[0].request_id

    def end(self, request_id, state, seconds=1, **fields):
        self.clock.now += seconds
        self.ledger.commit(outcomes=[Outcome(request_id, state, **fields)])
        return request_id

    def pay(self, cost="6", messages=2, request_id=None):
        """Record the response to a request."""
        told = {"response": "{}", "cost": cost, "messages": messages, "parts": 3}
        return self.end(request_id or self.claim(), ACCEPTED, **told)

    def lose(self, **fields):
        """Claim a request whose response is lost."""
        return self.end(self.claim(**fields), UNKNOWN)


@pytest.fixture
def enter(store, clock):
    """Enter a campaign of an account."""
    store.clock = clock
    return lambda *names, **options: Campaign(store, clock, *names, **options)


@pytest.fixture
def campaign(enter):
    return enter()


@pytest.fixture
def see(store, clock):
    """Read a balance, which takes a second."""

    def see(amount, key=KEY):
        record_reading(store, key, None if amount is None else Decimal(amount), clock.now, clock.now + 1)
        clock.now += 1

    return see


def history(store, *request_ids, key=KEY):
    """Return the only history around requests: the readings, and the requests by id."""
    ((readings, requests),) = read_histories(store, key, request_ids)
    return list(readings), {each.id: each for each in requests}


def test_a_lost_response_lies_between_readings(store, campaign, clock, see):
    """A response states the cost; a request without one may have cost what was planned, until its deadline."""
    see("100")
    paid, lost = campaign.pay(), campaign.lose()
    see("94")
    assert history(store, lost) == (
        [Reading(START, START + 1, Decimal(100)), Reading(START + 3, START + 4, Decimal(94))],
        {
            paid: BilledRequest(paid, START + 1, START + 2, Decimal(6), Decimal(6), Decimal(6)),
            lost: BilledRequest(lost, START + 2, START + 62, Decimal(6), Decimal(6)),
        },
    )


def test_what_has_no_response_may_have_been_charged(store, campaign, clock):
    """Under way, lapsed, unknown, and closed by the balance or by a person, who may be wrong."""
    lapsed = campaign.claim()
    clock.now += CLAIM_SECONDS + 1
    taken, given_back, sent, not_sent, asked = (campaign.lose() for _ in range(5))
    flying = campaign.claim()
    close_by_balance(store, "c", {taken: (ACCEPTED, PROOF), given_back: (NOT_SENT, PROOF)})
    resolve(store, sent, ACCEPTED, "ann")
    resolve(store, not_sent, NOT_SENT, "ann")
    _, requests = history(store, asked)
    assert {each.id: each.stated for each in requests.values()} == dict.fromkeys(
        [lapsed, taken, given_back, sent, not_sent, asked, flying]
    )
    assert {each.closed_at - each.claimed_at for each in requests.values()} == {CLAIM_SECONDS}


def test_a_late_response_and_a_refusal_state_the_cost(store, campaign, clock):
    """Whatever was decided before, and nothing for what was not posted, was refused or took nobody: open until then."""
    refused = campaign.end(campaign.claim(), NOT_SENT, seconds=5)
    empty = campaign.end(campaign.claim(), NOT_SENT, seconds=5, messages=0, cost="0", response="{}")
    late = campaign.lose()
    resolve(store, late, NOT_SENT, "ann")
    clock.now += 100
    campaign.pay("4", request_id=late)
    _, requests = history(store, campaign.lose())
    found = [requests[each] for each in (refused, empty, late)]
    assert [(each.stated, each.closed_at - each.claimed_at) for each in found] == [(0, 5), (0, 5), (4, 102)]


def test_a_group_costs_one_part_or_more(store, enter):
    """Nobody knows how many people are in it."""
    group = enter(kind="group").lose(parts=())
    _, requests = history(store, group)
    assert (requests[group].least, requests[group].most) == (4, Decimal("Infinity"))


@pytest.mark.parametrize(("costs", "bounds"), [(["6"], (6, 6)), (["3"], (3, 6)), (["9", "12"], (6, 12))])
def test_costs_that_responses_state_widen_what_was_expected(store, campaign, costs, bounds):
    """The prices that a task names may be off: what all of a request cost shows by how much."""
    for cost in costs:
        campaign.pay(cost)
    campaign.pay("1", messages=1)
    lost = campaign.lose()
    _, requests = history(store, lost)
    assert (requests[lost].least, requests[lost].most) == bounds


def test_a_claim_records_what_it_is_expected_to_cost(rows, enter):
    """By its own messages, also where it has won but some of them."""
    prices = {"2782": 2, "27820000002": "0.5", "": 9}
    enter(price=prices).claim()
    chunk = chunk_of(people(4), [1, 1, 3, 4])
    claim = enter(price=prices).ledger.commit(chunks=[chunk], claim_seconds=CLAIM_SECONDS)[0]
    assert claim.won == [2, 3]
    expected = [(2, 3, "6"), (2, 7, "9.5")]
    assert rows("SELECT submitted, planned_parts, planned_cost FROM sms_request ORDER BY id") == expected


def test_what_tells_nothing_of_a_request_is_not_in_its_history(store, enter, campaign, see):
    """Requests and readings of another account, and readings that are post-paid; with an outcome it has none at all."""
    other = enter("other", OTHER)
    lost, of_other = campaign.lose(), other.lose()
    see("9", OTHER)
    see(None)
    readings, requests = history(store, lost)
    assert (readings, list(requests)) == ([], [lost])
    assert [each.account for each in named_requests(store, [lost, of_other])] == [KEY, OTHER]
    assert list(read_histories(store, OTHER, [lost])) == list(read_histories(store, KEY, [campaign.pay()])) == []


def test_a_history_goes_back_to_readings_of_more_than_an_hour_before(store, campaign, clock, see, monkeypatch):
    """And to what may have been open then; nothing of long ago is read."""
    monkeypatch.setattr(balances, "READINGS_BEFORE", 1)
    monkeypatch.setattr(balances, "READINGS_AFTER", 1)
    campaign.pay()
    see("80")
    clock.now += 2 * HOUR
    before = campaign.pay()
    see("70")
    clock.now += 1.5 * HOUR
    see("60")
    lost = campaign.lose()
    see("50")
    clock.now += CLAIM_SECONDS
    see("40")
    see("30")
    campaign.pay()
    readings, requests = history(store, lost)
    assert [reading.amount for reading in readings] == [70, 60, 50, 40]
    assert list(requests) == [before, lost]


def test_requests_that_lie_far_apart_have_histories_of_their_own(store, campaign, clock):
    """Each is asked about in one of them."""
    first, near = campaign.lose(), campaign.lose()
    clock.now += CLAIM_SECONDS + 3 * HOUR
    far = campaign.lose()
    found = [[each.id for each in requests] for _, requests in read_histories(store, KEY, [far, first, near])]
    assert found == [[first, near], [far]]


def test_what_was_lost_lately_is_found(store, enter, campaign, clock):
    """Of the account, unknown or lapsed, until some time after it was settled."""
    enter("other", OTHER).lose()
    old, lapsed = campaign.lose(), campaign.claim()
    clock.now += CLAIM_SECONDS + 5
    lost, _, _ = campaign.lose(), campaign.pay(), campaign.claim()
    assert lost_lately(store, KEY, clock.now - 10) == {old, lapsed, lost}
    assert lost_lately(store, KEY, clock.now) == {lost}


def test_evidence_is_kept_with_unknown_requests(store, campaign, clock):
    """It is read again with the request, also where its claim has lapsed; one that has an outcome gets none."""
    lost, taken, lapsed = campaign.lose(), campaign.pay(), campaign.claim()
    note_evidence(store, "c", {lost: DOUBT, taken: DOUBT, lapsed: DOUBT})
    assert [row.evidence for row in named_requests(store, [lost, taken, lapsed])] == [DOUBT, None, None]
    clock.now += CLAIM_SECONDS + 1
    note_evidence(store, "c", {lapsed: DOUBT})
    assert [(row.request_id, row.evidence) for row in unknown_requests(store)] == [(lost, DOUBT), (lapsed, DOUBT)]
    note_evidence(store, "c", {lost: PROOF})
    assert named_requests(store, [lost])[0].evidence == PROOF


@pytest.mark.parametrize("is_lost_before", [True, False])
def test_what_a_purge_deletes_is_blamed_on_no_request(store, enter, campaign, clock, see, is_lost_before):
    """No balance from before its charges is compared with a later one: what it cost would look like a lost request."""
    see("100")
    lost = [campaign.lose()] if is_lost_before else []
    enter("other").pay()
    clock.now += 1000.0
    lost += [] if is_lost_before else [campaign.lose()]
    clock.now += CLAIM_SECONDS
    see("94")
    long_ago = clock.now - CLAIM_SECONDS - 500
    purge(store, old_campaigns(store, long_ago), long_ago)
    assert [weigh(store, KEY, lost)[each].outcome for each in lost] == ["undecided"]
