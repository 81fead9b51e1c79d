from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import select, update
from support.sending import claimant, people

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger import account_history
from airflow_provider_sms.ledger.account import UNDECIDED, Account, KeptEvidence, Observation, OpenRequest
from airflow_provider_sms.ledger.account_history import (
    account_of,
    note_evidence,
    read_histories,
    read_history,
)
from airflow_provider_sms.ledger.balances import record_reading
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import close_by_balance, resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.purge import old_campaigns, purge
from airflow_provider_sms.ledger.request_queries import named_requests, unknown_requests
from airflow_provider_sms.ledger.schema import request
from airflow_provider_sms.sending.reconciliation import weigh

KEY, OTHER = "a" * 32, "b" * 32
CLAIM_SECONDS = 60.0
START = 1_000_000.0
PROOF = KeptEvidence("charged", "The balance fell by 3 more than the responses account for.", START)
DOUBT = KeptEvidence("undecided", "No balance is known after it.", START)


class Campaign:
    """A campaign of an account whose SMS parts are expected to cost from 1 to 2 credits."""

    def __init__(self, store, clock, name, key, kind, most_price=2):
        account = Account(key, Decimal(1), Decimal(most_price))
        self.name = name
        self.clock = clock
        self.ledger = CampaignLedger(store, name, claimant(), clock=clock, kind=kind, account=account)
        self.claims = 0

    def claim(self, planned_parts=3):
        """Claim a request of two people, who are texted by no other one."""
        messages = people(2, 2 * self.claims)
        self.claims += 1
        chunk = Chunk([m.key for m in messages], [m.destination for m in messages], planned_parts=planned_parts)
        return self.ledger.commit(chunks=[chunk], claim_seconds=CLAIM_SECONDS)[0].request_id

    def record(self, request_id, state, **fields):
        self.ledger.commit(outcomes=[Outcome(request_id, state, **fields)])

    def pay(self, balance, cost="3", request_id=None, seconds=1, **fields):
        """Record the response to a request some seconds after it was claimed."""
        request_id = request_id or self.claim()
        self.clock.now += seconds
        self.record(request_id, ACCEPTED, response="{}", cost=cost, remaining_balance=str(balance), **fields)
        return request_id

    def lose(self, seconds=1, **fields):
        """Claim a request whose response is lost some seconds later."""
        request_id = self.claim(**fields)
        self.clock.now += seconds
        self.record(request_id, UNKNOWN)
        return request_id


@pytest.fixture
def enter(store, clock):
    """Enter a campaign of an account."""
    store.clock = clock
    return lambda name="c", key=KEY, kind="bulk", **prices: Campaign(store, clock, name, key, kind, **prices)


@pytest.fixture
def campaign(enter):
    return enter()


def opened(history):
    """Return the requests that are open in a history, by their ids."""
    return {each.request_id: each for each in history.open_requests}


def test_a_lost_response_lies_between_those_that_came(store, campaign, clock):
    """Responses tell the balance and what they charged; a request without one may have cost what was planned."""
    first = campaign.pay(97, seconds=5)
    lost = campaign.lose(seconds=5)
    record_reading(store, KEY, Decimal("94.5"), clock.now + 100, clock.now + 101)
    assert read_history(store, KEY, [lost]) == account_history.AccountHistory(
        [
            Observation(Decimal(97), Decimal(3), START, START + 5, first),
            Observation(Decimal("94.5"), Decimal(0), START + 110, START + 111),
        ],
        [OpenRequest(lost, Decimal(1), Decimal(6), Decimal(3), START + 5, START + 65)],
    )


def test_a_request_is_settled_at_the_deadline_of_its_claim(store, campaign, clock):
    """Whether its response was lost, it lapsed, or it may still be under way."""
    lost, lapsed = campaign.lose(seconds=5), campaign.claim()
    clock.now += CLAIM_SECONDS + 1
    flying = campaign.claim()
    found = opened(read_history(store, KEY, [lost, lapsed, flying]))
    assert {each: (one.settled, one.is_asked, one.in_flight) for each, one in found.items()} == {
        lost: (START + 60, True, False),
        lapsed: (START + 65, True, False),
        flying: (START + 126, False, True),
    }


def test_the_prices_are_those_of_the_responses(store, enter, campaign):
    """Prices charged in the campaign count, then those charged in others, then the expected; the least and the most."""
    campaign, other = enter("priced", most_price=1), enter("other")
    lost = campaign.lose()
    assert opened(read_history(store, KEY, [lost]))[lost].most == Decimal(3)
    other.pay(90, least_price="9", most_price="9")
    found = opened(read_history(store, KEY, [lost]))[lost]
    assert (found.least, found.most, found.whole) == (9, 27, 27)
    campaign.pay(80, least_price="0.5", most_price="1.5")
    campaign.pay(70, least_price="0.25", most_price="1")
    found = opened(read_history(store, KEY, [lost]))[lost]
    assert (found.least, found.most, found.whole) == (Decimal("0.25"), Decimal("4.5"), Decimal("0.75"))


def test_prices_that_differ_by_number_count_beside_those_of_the_responses(store, campaign):
    """People may be in networks that no response was about, but of which the caller named the price."""
    lost = campaign.lose()
    campaign.pay(80, least_price="1.5", most_price="1.5")
    found = opened(read_history(store, KEY, [lost]))[lost]
    assert (found.least, found.most, found.whole) == (1, 6, 3)


def test_a_request_of_no_account_may_explain_what_the_balance_did(store, campaign):
    """An older version of the package beside this one records no account, and may have sent with this one."""
    lost = campaign.lose()
    paid = campaign.pay(80, cost="3")
    with store.write(0) as connection:
        connection.execute(update(request).where(request.c.id == paid).values(account=None, remaining_balance=None))
    found = opened(read_history(store, KEY, [lost]))[paid]
    assert (found.least, found.most, found.is_asked) == (0, 3, False)


def test_a_request_that_was_seen_to_be_charged_for_is_charged_once(store, campaign, clock):
    """It was charged for before the moment that the evidence has, whether or not anybody has closed it since."""
    seen, closed, vague = campaign.lose(seconds=5), campaign.lose(seconds=5), campaign.lose(seconds=5)
    note_evidence(store, "c", {seen: PROOF._replace(settles_at=START + 16), vague: PROOF})
    close_by_balance(store, "c", {closed: (ACCEPTED, PROOF._replace(settles_at=START + 17))})
    found = opened(read_history(store, KEY, [seen, vague]))
    assert {each: one.settled for each, one in found.items()} == {
        seen: START + 16,
        closed: START + 17,
        vague: START + 70,
    }


def test_where_nothing_is_charged_the_least_is_nothing(store, campaign):
    """A balance that does not fall proves nothing of a request that may have been free."""
    campaign.pay(90, cost="0.0")
    lost = campaign.lose()
    found = opened(read_history(store, KEY, [lost]))[lost]
    assert (found.least, found.most, found.whole) == (0, 6, 0)


@pytest.mark.parametrize(("kind", "parts"), [("group", 3), ("bulk", None)])
def test_a_request_of_unknown_size_may_have_cost_any_amount(store, enter, kind, parts):
    """Nobody knows how many people a group has."""
    lost = enter(kind=kind).lose(planned_parts=parts)
    found = opened(read_history(store, KEY, [lost]))[lost]
    assert (found.least, found.most, found.whole) == (0, None, None)


def test_other_requests_that_may_have_been_charged_are_known(store, enter, campaign, clock):
    """Of any campaign: those that are unknown or under way, and those that a person or the balance closed."""
    other = enter("other")
    asked, unknown, called_sent, called_not_sent = campaign.lose(), other.lose(), other.lose(), other.lose()
    proved, proved_for, unproved = other.lose(), other.lose(), other.lose()
    resolve(store, called_sent, ACCEPTED, "ann")
    resolve(store, called_not_sent, NOT_SENT, "ann")
    closed = {proved: (ACCEPTED, PROOF), proved_for: (ACCEPTED, PROOF._replace(amount="4"))}
    close_by_balance(store, "other", {**closed, unproved: (NOT_SENT, PROOF)})
    clock.now += CLAIM_SECONDS
    flying = other.claim()
    plain = other.claim()
    other.record(plain, NOT_SENT)
    found = opened(read_history(store, KEY, [asked]))
    assert found.keys() == {asked, unknown, called_sent, called_not_sent, proved, proved_for, flying}
    assert [each for each, one in found.items() if one.is_asked] == [asked]
    assert [each for each, one in found.items() if one.in_flight] == [flying]
    assert [each for each, one in found.items() if one.is_charged] == [proved, proved_for]
    assert (found[proved].least, found[proved].most, found[proved].whole) == (1, 6, 3)
    assert (found[proved_for].least, found[proved_for].most, found[proved_for].whole) == (4, 4, 4)


def test_a_response_that_took_nobody_tells_the_balance(store, campaign, clock):
    """It charged nothing; one that tells no balance is a charge at some moment before its end."""
    lost, empty, silent = campaign.lose(), campaign.claim(), campaign.claim()
    clock.now += 1
    campaign.record(empty, NOT_SENT, remaining_balance="50", response="{}")
    campaign.record(silent, ACCEPTED, cost="2", response="{}")
    history = read_history(store, KEY, [lost])
    assert history.observations == [Observation(Decimal(50), Decimal(0), START + 1, START + 2, empty)]
    two = Decimal(2)
    assert opened(history)[silent] == OpenRequest(
        silent, two, two, two, START + 1, START + 2, is_asked=False, is_charged=True
    )


def test_what_is_not_believed_tells_nothing(store, campaign, clock):
    """A response that leaves its request unknown is no observation, whatever balance it quotes."""
    lost = campaign.claim()
    campaign.record(lost, UNKNOWN, remaining_balance="50", cost="3")
    history = read_history(store, KEY, [lost])
    assert (history.observations, list(opened(history))) == ([], [lost])


def test_accounts_do_not_see_each_other(store, enter, campaign, clock):
    """Neither requests nor readings."""
    other = enter("other", OTHER)
    lost, of_other = campaign.lose(), other.lose()
    other.pay(5)
    record_reading(store, OTHER, Decimal(9), clock.now, clock.now)
    history = read_history(store, KEY, [lost])
    assert (history.observations, list(opened(history))) == ([], [lost])
    assert account_of(store, [lost, of_other, 77]) == {lost: KEY, of_other: OTHER}


def test_nothing_is_recorded_of_an_unknown_account(store, clock):
    """The ledger of a campaign that was entered without one."""
    ledger = CampaignLedger(store, "c", claimant(), clock=clock)
    chunk = Chunk([people(1)[0].key], [people(1)[0].destination])
    (claimed,) = ledger.commit(chunks=[chunk], claim_seconds=CLAIM_SECONDS)
    assert account_of(store, [claimed.request_id]) == {claimed.request_id: None}


def test_a_request_with_an_outcome_is_not_asked_about(store, campaign):
    """Whoever asks may have read it before."""
    paid = campaign.pay(5)
    history = read_history(store, KEY, [paid])
    assert (list(history.observations), list(history.open_requests)) == ([], [])


@pytest.fixture
def few_around(monkeypatch):
    """Histories of two observations before and after what is asked, and of few seconds and ids."""
    monkeypatch.setattr(account_history, "OBSERVATIONS_AROUND", 2)
    monkeypatch.setattr(account_history, "LONGEST_REQUEST_SECONDS", 100.0)
    monkeypatch.setattr(account_history, "DISORDER_SECONDS", 0.0)
    monkeypatch.setattr(account_history, "IDS_BETWEEN", 2)


def test_a_history_is_a_window(store, campaign, clock, few_around):
    """Enough observations before and after; readings of that time; nothing from long before or long after."""
    ids = []
    for number in range(9):
        record_reading(store, KEY, Decimal(1000 + number), clock.now, clock.now)
        clock.now += 10
        ids.append(campaign.lose() if number == 4 else campaign.pay(100 - number))
        clock.now += 100
    history = read_history(store, KEY, [ids[4]])
    assert [(each.request_id, each.amount) for each in history.observations] == [
        (ids[2], 98), (None, 1003), (ids[3], 97), (None, 1004), (None, 1005), (ids[5], 95), (None, 1006), (ids[6], 94),
    ]  # fmt: skip
    assert list(opened(history)) == [ids[4]]


def test_what_crosses_the_edge_of_a_window_is_a_charge(store, campaign, clock, few_around):
    """Its balance is of no use there, but what it charged may have moved the balance within."""
    campaign.pay(200)
    clock.now += 200
    crossing = campaign.claim()
    clock.now += 1
    first = campaign.claim()
    clock.now += 1
    campaign.pay(99, request_id=crossing)
    campaign.pay(96, request_id=first)
    clock.now += 10
    second = campaign.pay(93)
    clock.now += 10
    lost = campaign.lose()
    clock.now += CLAIM_SECONDS + 10
    after = [campaign.pay(90), campaign.claim()]
    beyond = campaign.claim()
    clock.now += 1
    campaign.pay(87, request_id=after[1])
    clock.now += 5
    campaign.pay(84, request_id=beyond)
    history = read_history(store, KEY, [lost])
    assert [each.request_id for each in history.observations] == [first, second, *after]
    found = opened(history)
    assert list(found) == [crossing, lost, beyond]
    assert [each for each, one in found.items() if one.is_charged] == [crossing, beyond]
    assert (found[crossing].least, found[crossing].most, found[crossing].is_asked) == (3, 3, False)


def test_a_request_from_before_a_window_may_be_charged_within(store, campaign, clock, few_around):
    """It is open until it has settled, however many responses came since it was claimed."""
    campaign.claim()
    clock.now += CLAIM_SECONDS + 200
    still_open = campaign.claim()
    seen = []
    for balance in (100, 99, 98, 97):
        seen.append(campaign.pay(balance))
        clock.now += 10
    lost = campaign.lose()
    history = read_history(store, KEY, [lost])
    assert [each.request_id for each in history.observations] == seen[-2:]
    assert list(opened(history)) == [still_open, lost]


def test_requests_that_lie_far_apart_have_histories_of_their_own(store, campaign, clock, few_around):
    """Each is asked about in one of them; what lies between is in neither."""
    one, next_to_it = campaign.lose(), campaign.lose()
    clock.now += CLAIM_SECONDS + 200
    between = []
    for balance in range(100, 90, -1):
        between.append(campaign.pay(balance))
        clock.now += 10
    two = campaign.lose()
    histories = list(read_histories(store, KEY, [two, one, next_to_it]))
    asked = [[each.request_id for each in history.open_requests if each.is_asked] for history in histories]
    assert asked == [[one, next_to_it], [two]]
    assert [[each.request_id for each in history.observations] for history in histories] == [between[:2], between[-2:]]


def test_requests_that_were_open_at_once_share_a_history(store, campaign, clock, few_around):
    """However many lie between them: each may have been charged while the other was."""
    one = campaign.lose()
    for balance in range(100, 90, -1):
        campaign.pay(balance)
    two = campaign.lose()
    (history,) = read_histories(store, KEY, [one, two])
    assert [each.request_id for each in history.open_requests if each.is_asked] == [one, two]
    assert len(history.observations) == 10


def test_a_claim_records_what_was_planned(store, enter, clock):
    """Requests of one commit have their own SMS parts, also where they are of one size."""
    ledger, messages = enter().ledger, people(8)
    plans = [5, None, 2, 3]
    chunks = [
        Chunk([m.key for m in two], [m.destination for m in two], planned_parts=plan)
        for two, plan in zip([messages[n : n + 2] for n in range(0, 8, 2)], plans, strict=True)
    ]
    claims = ledger.commit(chunks=chunks, claim_seconds=CLAIM_SECONDS)
    assert [ledger.holders([chunk.keys[0]])[chunk.keys[0]].request_id for chunk in chunks] == [
        claim.request_id for claim in claims
    ]
    columns = (request.c.planned_parts, request.c.account, request.c.least_price, request.c.most_price)
    with store.read() as connection:
        rows = [tuple(row) for row in connection.execute(select(*columns).order_by(request.c.id))]
    assert rows == [(plan, KEY, "1", "2") for plan in plans]


def test_a_smaller_claim_keeps_its_plan(store, enter):
    """Of a chunk that is won in part, all SMS parts are the most that it can cost."""
    first, second = enter(), enter()
    first.claim()
    messages = people(3)
    chunk = Chunk([m.key for m in messages], [m.destination for m in messages], planned_parts=4)
    (won,) = second.ledger.commit(chunks=[chunk], claim_seconds=CLAIM_SECONDS)
    with store.read() as connection:
        query = select(request.c.submitted, request.c.planned_parts).where(request.c.id == won.request_id)
        assert tuple(connection.execute(query).one()) == (1, 4)


def test_a_response_replaces_the_expected_prices(store, campaign):
    """One without prices leaves them; amounts of any length find room."""
    long = "0." + "123456789" * 6
    priced = campaign.pay("1" * 20 + "." + "3" * 30, least_price=long, most_price="3")
    plain = campaign.pay(5)
    columns = (request.c.remaining_balance, request.c.least_price, request.c.most_price)
    with store.read() as connection:
        rows = {row[0]: tuple(row[1:]) for row in connection.execute(select(request.c.id, *columns))}
    assert rows == {
        priced: ("1" * 20 + "." + "3" * 10, "0.123456789123456789123456789123", "3"),
        plain: ("5", "1", "2"),
    }


def test_a_post_paid_reading_is_no_observation(store, campaign, clock):
    """There is no balance to follow."""
    lost = campaign.lose()
    record_reading(store, KEY, None, clock.now, clock.now)
    assert list(read_history(store, KEY, [lost]).observations) == []


def test_evidence_is_kept_with_unknown_requests(store, campaign, clock):
    """It is read again with the request, also where its claim has lapsed; one that has an outcome gets none."""
    lost, taken, lapsed = campaign.lose(), campaign.pay(5), campaign.claim()
    flying = lapsed
    note_evidence(store, "c", {lost: DOUBT, taken: DOUBT, flying: DOUBT})
    assert [row.evidence for row in named_requests(store, [lost, taken, flying])] == [DOUBT, None, None]
    clock.now += CLAIM_SECONDS + 1
    note_evidence(store, "c", {lapsed: DOUBT})
    assert [(row.request_id, row.evidence) for row in unknown_requests(store)] == [(lost, DOUBT), (lapsed, DOUBT)]
    note_evidence(store, "c", {lost: PROOF})
    assert named_requests(store, [lost])[0].evidence == PROOF


def test_a_ledger_that_cannot_be_read_is_an_error(store, campaign):
    """As with every look at a ledger."""
    lost = campaign.lose()
    with store.write(1) as connection:
        connection.exec_driver_sql("DROP TABLE sms_balance")
    with pytest.raises(LedgerError, match="cannot be read"):
        read_history(store, KEY, [lost])


@pytest.fixture
def forgetting(store, clock):
    """Forget the campaign ``other``, long after."""

    def forgetting():
        clock.now += 1_000.0
        purge(store, [each for each in old_campaigns(store, clock.now) if each.name == "other"], 0.0)

    return forgetting


def test_what_is_forgotten_is_blamed_on_no_request(store, enter, campaign, clock, forgetting):
    """Nothing is told any more of requests that were unknown while a campaign was charged that is forgotten."""
    other, apart = enter("other"), enter("apart", OTHER)
    campaign.pay(100)
    clock.now += 10
    before = campaign.lose()
    other.pay(97)
    clock.now += 10
    next_after, elsewhere = campaign.lose(), apart.lose()
    clock.now += 10
    campaign.pay(94)
    clock.now += 10
    later = campaign.lose()
    forgetting()
    assert account_of(store, [before, next_after, later, elsewhere]) == {
        before: None, next_after: None, later: KEY, elsewhere: OTHER,
    }  # fmt: skip


def test_a_reading_after_what_is_forgotten_is_enough(store, enter, campaign, clock, forgetting):
    """A movement of the balance ends where it was read: a request that was claimed later has no part in it."""
    enter("other").pay(97)
    clock.now += 10
    record_reading(store, KEY, Decimal(97), clock.now, clock.now + 1)
    clock.now += 2
    lost = campaign.lose()
    forgetting()
    assert account_of(store, [lost]) == {lost: KEY}


def test_a_request_under_way_keeps_its_account(store, enter, campaign, clock, forgetting):
    """Its response tells the balance to whoever comes next."""
    enter("other").pay(97)
    clock.now += 1_000.0
    flying = campaign.claim()
    clock.now -= 1_000.0
    forgetting()
    assert account_of(store, [flying]) == {flying: KEY}


@pytest.mark.parametrize("seen_by", ["response", "reading"])
def test_what_is_forgotten_is_blamed_on_no_later_request(store, enter, campaign, clock, forgetting, seen_by):
    """No balance from before the forgotten charges is compared with a later one: what they cost would look like one."""
    if seen_by == "response":
        campaign.pay(100)
    else:
        record_reading(store, KEY, Decimal(100), clock.now, clock.now + 1)
        clock.now += 2
    enter("other").pay(97)
    forgetting()
    lost = campaign.lose()
    clock.now += CLAIM_SECONDS
    record_reading(store, KEY, Decimal(97), clock.now, clock.now + 1)
    assert weigh(store, KEY, [lost])[lost].verdict == UNDECIDED


def test_a_balance_that_overlaps_what_is_forgotten_tells_nothing(store, enter, campaign, clock, forgetting):
    """Nobody knows whether it shows the charge; the request's own charge stays known."""
    overlapping = campaign.claim()
    clock.now += 1
    enter("other").pay(97)
    campaign.pay(100, request_id=overlapping)
    forgetting()
    lost = campaign.lose()
    found = read_history(store, KEY, [lost])
    assert list(found.observations) == []
    assert (opened(found)[overlapping].least, opened(found)[overlapping].is_charged) == (Decimal(3), True)


def test_balances_after_what_is_forgotten_still_tell(store, enter, campaign, clock, forgetting):
    """So do those of another account, and the moments at which an account was post-paid."""
    apart = enter("apart", OTHER)
    apart.pay(50)
    record_reading(store, OTHER, Decimal(50), clock.now, clock.now + 1)
    record_reading(store, KEY, None, clock.now, clock.now + 1)
    clock.now += 2
    enter("other").pay(97)
    clock.now += 10
    campaign.pay(94)
    forgetting()
    lost, elsewhere = campaign.lose(), apart.lose()
    assert [each.amount for each in read_history(store, KEY, [lost]).observations] == [94]
    assert [each.amount for each in read_history(store, OTHER, [elsewhere]).observations] == [50, 50]
