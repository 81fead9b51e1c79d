from __future__ import annotations

import threading

import pytest
from sqlalchemy import text
from support.sending import claimant, outgoing, people

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.account import CHARGED, KeptEvidence
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import close_by_balance, resolve
from airflow_provider_sms.ledger.frequency_cap import FrequencyCap, enter_group
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.purge import forget_campaign, old_campaigns
from airflow_provider_sms.messages.outgoing import Outgoing

DAY = 86_400.0
WEEK = 7 * DAY


def chunk(messages, take_over=None):
    return Chunk([m.key for m in messages], [m.destination for m in messages], take_over or {})


def claim(ledger, messages, take_over=None):
    return ledger.commit(chunks=[chunk(messages, take_over)], claim_seconds=60.0)[0]


def end(ledger, claimed, state):
    ledger.commit(outcomes=[Outcome(claimed.request_id, state)])


def won(claimed):
    return list(claimed.won), list(claimed.capped)


def texted(ledger, messages):
    return won(claim(ledger, messages))[0]


@pytest.fixture
def campaign(store, clock):
    """Enter a campaign of a group."""

    def campaign(name, seconds=WEEK, group="marketing", *, into=store, **who):
        return CampaignLedger(into, name, claimant(**who), clock=clock, cap=FrequencyCap(group, seconds))

    return campaign


@pytest.fixture
def rows(store):
    """Read the ledger."""

    def rows(query):
        with store.read() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    return rows


def test_a_person_is_texted_once_in_the_interval_by_a_group(campaign, clock):
    """Of two campaigns of a group the second one texts only whom the first one has not, until the interval is over."""
    assert won(claim(campaign("a"), people(3))) == ([0, 1, 2], [])
    clock.now += WEEK - 1
    other = campaign("b")
    assert won(claim(other, people(5))) == ([3, 4], [0, 1, 2])
    clock.now += 1
    assert won(claim(other, people(3))) == ([0, 1, 2], [])


def test_other_groups_and_campaigns_without_a_cap_are_not_counted(campaign, enter):
    """A cap is of one group; a campaign without one neither is held back nor holds others back."""
    claim(campaign("a"), people(1))
    assert texted(campaign("b", group="service"), people(1)) == [0]
    assert texted(enter(campaign="c"), people(1)) == [0]
    assert texted(enter(campaign="c"), people(1, 5)) == [0]
    assert texted(campaign("d"), people(1, 5)) == [0]


@pytest.mark.parametrize("state", [None, ACCEPTED, UNKNOWN])
def test_whoever_may_have_been_texted_counts(campaign, state):
    """A claim, an acceptance, and what is unknown."""
    first = campaign("a")
    claimed = claim(first, people(1))
    if state is not None:
        end(first, claimed, state)
    assert won(claim(campaign("b"), people(1))) == ([], [0])


def test_a_claim_of_which_nobody_may_be_texted_leaves_nothing(campaign, rows):
    """Its messages are nobody's, and it is no request."""
    claim(campaign("a"), people(2))
    other = campaign("b")
    assert claim(other, people(2)).request_id is None
    assert other.holders([m.key for m in people(2)]) == {}
    assert rows("SELECT count(*) FROM sms_request") == [(1,)]


def test_a_claim_of_which_some_may_be_texted_holds_these(campaign, rows):
    """The request says how many it posts, and the others can be claimed once the interval is over."""
    claim(campaign("a"), people(2))
    other = campaign("b")
    claimed = claim(other, people(5))
    assert other.holders([m.key for m in people(5)]).keys() == {m.key for m in people(3, 2)}
    assert rows(f"SELECT submitted FROM sms_request WHERE id = {claimed.request_id}") == [(3,)]


def test_a_person_has_one_message_of_a_campaign_in_the_interval(campaign):
    """Of several messages to a number the first goes out: in a chunk, in a commit, and in later ones."""
    ledger = campaign("a")
    one, two, three, four = (outgoing(27820000000, f"text {n}") for n in range(4))
    somebody, nobody = people(2, 1)
    claims = ledger.commit(chunks=[chunk([somebody, one, two]), chunk([three, nobody])], claim_seconds=60.0)
    assert [won(each) for each in claims] == [([0, 1], [2]), ([1], [0])]
    assert won(claim(ledger, [four])) == ([], [0])
    assert ledger.holders([m.key for m in (one, two, three, four)]).keys() == {one.key}


def test_what_somebody_else_holds_is_not_capped(campaign):
    """A message of another try is that try's, as ever; it is not said to be capped."""
    claim(campaign("a"), people(2))
    assert won(claim(campaign("a", try_number=2), people(2))) == ([], [])
    assert won(claim(campaign("a", try_number=2), people(3))) == ([2], [])


def test_a_group_of_the_service_is_not_capped(campaign):
    """A message to a group has no number to be capped by."""
    group = [Outgoing(bytes(15) + bytes([n]), None, "Hi") for n in range(2)]
    assert won(claim(campaign("a"), group)) == ([0, 1], [])


def test_many_are_capped_at_once(campaign):
    """As many as there are: no statement is bounded by its parameters."""
    claim(campaign("a"), people(1200))
    other = campaign("b")
    messages = people(1300, 100)
    parts = [messages[n : n + 100] for n in range(0, 1300, 100)]
    claims = other.commit(chunks=[chunk(part) for part in parts], claim_seconds=60.0)
    assert [len(each.capped) for each in claims] == [100] * 11 + [0] * 2
    assert len(other.holders([m.key for m in messages])) == 200


def not_sent(store, ledger, claimed, path):
    if path == "record":
        end(ledger, claimed, NOT_SENT)
    elif path == "finish":
        ledger.finish([Outcome(claimed.request_id, NOT_SENT)])
    elif path == "give back":
        ledger._in_doubt = [claimed.request_id]  # as after a commit that raised
        ledger.finish([])
    else:
        end(ledger, claimed, UNKNOWN)
        resolve(store, claimed.request_id, NOT_SENT, "ann")


PATHS = pytest.mark.parametrize("path", ["record", "finish", "give back", "resolve"])


@PATHS
def test_whoever_was_not_texted_can_be_texted(store, campaign, rows, path):
    """However it became known that a request was not sent, its people are free for the whole group."""
    ledger = campaign("a")
    not_sent(store, ledger, claim(ledger, people(2)), path)
    assert rows("SELECT count(*) FROM sms_contact") == [(0,)]
    assert won(claim(campaign("b"), people(2))) == ([0, 1], [])


@PATHS
def test_whoever_was_not_texted_was_texted_when_they_were_before(store, campaign, clock, path):
    """A request that was not sent leaves the text before it in force, for a longer interval."""
    first = claim(campaign("a"), people(2))
    clock.now += 2 * DAY
    daily = campaign("b", DAY)
    not_sent(store, daily, claim(daily, people(3)), path)
    assert campaign("c").capped([m.destination for m in people(4)]) == {m.destination for m in people(2)}
    clock.now += 5 * DAY
    assert won(claim(campaign("c"), people(3))) == ([0, 1, 2], [])
    assert first.request_id is not None


def test_what_was_not_sent_either_does_not_count(campaign, rows, clock):
    """A text before the one that was not sent counts only if it may have been sent itself."""
    first, second = campaign("a", DAY), campaign("b", DAY)
    one = claim(first, people(1))
    clock.now += DAY
    two = claim(second, people(1))
    end(first, one, NOT_SENT)
    end(second, two, NOT_SENT)
    assert rows("SELECT count(*) FROM sms_contact") == [(0,)]


def test_a_late_answer_keeps_what_it_tells(campaign):
    """What was accepted is not given back by a failure that comes after."""
    ledger = campaign("a")
    claimed = claim(ledger, people(1))
    end(ledger, claimed, ACCEPTED)
    end(ledger, claimed, NOT_SENT)
    assert won(claim(campaign("b"), people(1))) == ([], [0])


@pytest.fixture
def unknown(campaign):
    """A request of campaign a to some people, whose outcome is unknown, and how to take its messages over."""
    ledger = campaign("a")
    claimed = claim(ledger, people(2))
    end(ledger, claimed, UNKNOWN)
    return claimed.request_id, {m.key: claimed.request_id for m in people(2)}


def test_what_is_unknown_does_not_hold_back_its_own_repetition(campaign, unknown, clock):
    """Who asks for unknown messages to be sent again means these people; others of the group wait from then on."""
    clock.now += DAY
    assert won(claim(campaign("a", try_number=2), people(3), unknown[1])) == ([0, 1, 2], [])
    clock.now += WEEK - 1
    assert won(claim(campaign("b"), people(2))) == ([], [0, 1])


def test_a_repetition_that_was_not_sent_leaves_the_unknown_as_it_was(campaign, unknown, rows, clock):
    """The people were texted, or not, by the unknown request, and when that was."""
    request_id, take_over = unknown
    then = clock.now
    clock.now += DAY
    again = campaign("a", try_number=2)
    end(again, claim(again, people(3), take_over), NOT_SENT)
    contacts = rows("SELECT DISTINCT request_id, claimed_at, before_request_id FROM sms_contact")
    assert contacts == [(request_id, then, None)]
    assert rows("SELECT count(*) FROM sms_contact") == [(2,)]


def test_nothing_of_a_repetition_and_its_unknown_stays_when_neither_was_sent(store, campaign, rows, clock):
    """Then the people were texted when they were before both."""
    old = claim(campaign("old"), people(2)).request_id
    then = clock.now
    clock.now += 2 * DAY
    first, again = campaign("a", DAY), campaign("a", DAY, try_number=2)
    lost = claim(first, people(2))
    end(first, lost, UNKNOWN)
    second = claim(again, people(2), {m.key: lost.request_id for m in people(2)})
    assert won(second) == ([0, 1], [])
    end(again, second, NOT_SENT)
    resolve(store, lost.request_id, NOT_SENT, "ann")
    assert rows("SELECT DISTINCT request_id, claimed_at FROM sms_contact") == [(old, then)]


@pytest.fixture
def again(campaign, unknown, clock):
    """The repetition of all messages of an unknown request, a day later: its ledger, and its claim."""
    clock.now += DAY
    ledger = campaign("a", try_number=2)
    return ledger, claim(ledger, people(2), unknown[1])


@pytest.mark.parametrize("closed_as", [UNKNOWN, ACCEPTED])
def test_whom_an_unknown_request_texted_counts_when_its_repetition_was_not_sent(
    store, campaign, unknown, again, rows, clock, closed_as
):
    """Also where the request was closed as accepted while its repetition was under way, and has its messages again."""
    if closed_as == ACCEPTED:
        resolve(store, unknown[0], ACCEPTED, "ann")
    end(*again, NOT_SENT)
    assert rows("SELECT DISTINCT request_id, claimed_at FROM sms_contact") == [(unknown[0], clock.now - DAY)]
    assert won(claim(campaign("b"), people(2))) == ([], [0, 1])


@pytest.mark.parametrize("closing", ["person", "balance"])
def test_whom_a_request_texted_counts_when_it_and_its_repetition_are_closed(store, campaign, unknown, again, closing):
    """One was accepted, the other one was not sent: by a person, one after the other, or by the balance at once."""
    end(*again, UNKNOWN)
    closed = {unknown[0]: ACCEPTED, again[1].request_id: NOT_SENT}
    if closing == "person":
        for request_id, state in closed.items():
            resolve(store, request_id, state, "ann")
    else:
        evidence = KeptEvidence(CHARGED, "as the balance tells", store.clock())
        close_by_balance(store, "a", {each: (state, evidence) for each, state in closed.items()})
    assert won(claim(campaign("b"), people(2))) == ([], [0, 1])


def test_whom_the_first_of_several_requests_may_have_texted_counts(store, campaign, unknown, again, rows, clock):
    """It stays unknown, its repetition was closed as not sent, and the repetition of that one was not sent either."""
    ledger, second = again
    end(ledger, second, UNKNOWN)
    third = claim(ledger, people(2), {m.key: second.request_id for m in people(2)})
    resolve(store, second.request_id, NOT_SENT, "ann")
    end(ledger, third, NOT_SENT)
    assert rows("SELECT DISTINCT request_id, claimed_at FROM sms_contact") == [(unknown[0], clock.now - DAY)]
    assert won(claim(campaign("b"), people(2))) == ([], [0, 1])


def test_nobody_counts_when_no_request_of_several_was_sent(store, campaign, unknown, again):
    """In whatever order that became known."""
    ledger, second = again
    end(ledger, second, UNKNOWN)
    third = claim(ledger, people(2), {m.key: second.request_id for m in people(2)})
    resolve(store, unknown[0], NOT_SENT, "ann")
    end(ledger, third, NOT_SENT)
    resolve(store, second.request_id, NOT_SENT, "ann")
    assert texted(campaign("b"), people(2)) == [0, 1]


def test_what_is_unknown_and_capped_stays_unknown(campaign, unknown, rows, clock):
    """Whom another campaign texted meanwhile is not texted again, and the message is never called free."""
    request_id, take_over = unknown
    clock.now += WEEK
    claim(campaign("b"), people(1))
    again = campaign("a", try_number=2)
    claimed = claim(again, people(3), take_over)
    assert won(claimed) == ([1, 2], [0])
    holder = again.holders([people(1)[0].key])[people(1)[0].key]
    assert (holder.request_id, holder.state) == (request_id, UNKNOWN)
    end(again, claimed, NOT_SENT)
    assert {holder.request_id for holder in again.holders([m.key for m in people(3)]).values()} == {request_id}


def test_the_latest_text_counts_when_a_repetition_was_not_sent(campaign, unknown, rows, clock):
    """Also where another campaign texted the person between the unknown request and its repetition."""
    clock.now += WEEK
    then = clock.now
    between = claim(campaign("b"), people(2)).request_id
    clock.now += WEEK
    again = campaign("a", try_number=2)
    end(again, claim(again, people(2), unknown[1]), NOT_SENT)
    contacts = rows("SELECT DISTINCT request_id, claimed_at, before_request_id FROM sms_contact")
    assert contacts == [(between, then, unknown[0])]


def test_an_unknown_of_several_messages_to_a_person_is_given_back_once(store, campaign, enter, rows, clock):
    """A request that was made without a cap may have them; what a cap takes over of it is one of them."""
    old = claim(campaign("old"), people(1)).request_id
    clock.now += WEEK
    number = int(people(1)[0].destination)
    messages = [outgoing(number, "one"), outgoing(number, "two")]
    uncapped = enter(campaign="a")
    lost = claim(uncapped, messages)
    end(uncapped, lost, UNKNOWN)
    again = campaign("a", try_number=2)
    second = claim(again, messages, {m.key: lost.request_id for m in messages})
    assert won(second) == ([0], [1])
    end(again, second, NOT_SENT)
    assert rows("SELECT request_id, before_request_id FROM sms_contact") == [(lost.request_id, old)]
    assert {holder.request_id for holder in again.holders([m.key for m in messages]).values()} == {lost.request_id}
    resolve(store, lost.request_id, NOT_SENT, "ann")
    assert rows("SELECT request_id, before_request_id FROM sms_contact") == [(old, None)]


def test_who_would_be_capped_is_known_before(campaign, enter, clock):
    """A look at thousands of people at once; without a cap it is nobody."""
    claim(campaign("a"), people(1500))
    everybody = [m.destination for m in people(10_000)]
    expected = {m.destination for m in people(1500)}
    assert campaign("b").capped(everybody) == expected
    assert (campaign("b").capped([]), enter(campaign="c").capped(everybody)) == (set(), set())
    clock.now += WEEK
    assert campaign("b").capped(everybody) == set()


def test_a_campaign_that_is_forgotten_does_not_count(store, campaign, rows):
    """Who was texted is forgotten with the campaign that texted them."""
    ledger = campaign("a")
    end(ledger, claim(ledger, people(3)), ACCEPTED)
    other = campaign("b")
    end(other, claim(other, people(1, 10)), UNKNOWN)
    (old,) = [each for each in old_campaigns(store, 2_000_000.0) if each.name == "a"]
    forget_campaign(store, old)
    assert rows("SELECT destination FROM sms_contact") == [(int(people(1, 10)[0].destination),)]


def test_a_failed_commit_leaves_nobody_texted(campaign, rows, monkeypatch):
    """Claims and contacts are of one transaction."""
    ledger = campaign("a")
    insert = ledger._store.insert_contacts

    def insert_and_fail(connection, *values, **options):
        insert(connection, *values, **options)
        connection.exec_driver_sql("INSERT INTO no_such_table VALUES (1)")

    monkeypatch.setattr(ledger._store, "insert_contacts", insert_and_fail)
    with pytest.raises(LedgerError):
        claim(ledger, people(2))
    assert rows("SELECT count(*) FROM sms_contact") == rows("SELECT count(*) FROM sms_message") == [(0,)]


def test_a_claim_that_came_between_is_seen(campaign, open_store, monkeypatch):
    """Who may be texted is decided by the claim's own transaction, however late another campaign texts them."""
    theirs = open_store()
    ledger, other = campaign("a", into=theirs), campaign("b", into=open_store())
    write = theirs.write

    def write_after_another_claim(lock, **how):
        claim(other, people(2))
        return write(lock, **how)

    monkeypatch.setattr(theirs, "write", write_after_another_claim)
    assert won(claim(ledger, people(3))) == ([2], [0, 1])


def in_threads(*work):
    """Run functions at once, and give what they raised."""
    raised = []

    def run(each):
        try:
            each()
        except Exception as error:  # noqa: BLE001  # whatever it is, the test tells
            raised.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120.0)
    return raised


def test_campaigns_that_run_at_once_text_each_person_once(campaign, open_store):
    """Two campaigns with the same people, in other orders, some of whose requests are not sent and claimed again."""
    messages = people(600)
    texts = {"a": [], "b": []}
    ledgers = {name: campaign(name, into=open_store()) for name in texts}

    def send(name, order):
        ledger, unsent = ledgers[name], []
        for turn in range(3):
            for place in range(0, len(messages), 40):
                part = messages[place : place + 40][::order]
                chunks = [chunk(part[:20]), chunk(part[20:])]
                claims = ledger.commit(outcomes=unsent, chunks=chunks, claim_seconds=60.0)
                made = [each.request_id for each in claims if each.request_id is not None]
                # In the first turn every other one is not sent.
                unsent = [Outcome(request_id, NOT_SENT) for request_id in made[turn:1]]
                ledger.commit(outcomes=[Outcome(request_id, ACCEPTED) for request_id in made[len(unsent) :]])
                for each, claimed in zip(chunks, claims, strict=True):
                    if claimed.request_id in made[len(unsent) :]:
                        texts[name] += [each.destinations[position] for position in claimed.won]
        ledger.finish(unsent)

    assert in_threads(lambda: send("a", 1), lambda: send("b", -1)) == []
    assert sorted(texts["a"] + texts["b"]) == sorted(m.destination for m in messages)


@pytest.mark.slow
def test_releases_beside_claims_in_several_groups_wait_in_no_circle(campaign, open_store, rows):
    """Campaigns that have been in two groups give back in both while others claim in both: none is a victim."""
    messages = people(60)

    def turns(number):
        store = open_store()
        ledgers = [campaign(f"c{number}", 0.0, group, into=store) for group in ("one", "two")][:: (-1) ** number]

        def run():
            for turn in range(15):
                part = messages[:: (-1) ** (number + turn)]
                made = [claim(ledger, part[place::2]) for place, ledger in enumerate(ledgers)]
                for place in (turn % 2, 1 - turn % 2):
                    ids = [each.request_id for each in made[place : place + 1] if each.request_id is not None]
                    unsent = [Outcome(each, NOT_SENT) for each in ids]
                    (more,) = ledgers[place].commit(outcomes=unsent, chunks=[chunk(part[:1])], claim_seconds=60.0)
                    ledgers[place].finish([Outcome(more.request_id, NOT_SENT)] if more.request_id else [])

        return run

    assert in_threads(*(turns(number) for number in range(4))) == []
    assert rows("SELECT count(*) FROM sms_message") == [(0,)]


@pytest.fixture
def busy(postgres_url, clock):
    """A ledger of a campaign on a server, that gives up after a while, and somebody else's store."""
    # Not sooner: the server also ends a session that does nothing for so long, as on a busy machine.
    store, mine = open_postgres(postgres_url), open_postgres(postgres_url, busy_seconds=2.0)
    yield CampaignLedger(mine, "a", claimant(), clock=clock, cap=FrequencyCap("marketing", WEEK)), store
    mine.close()
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["claim", "record", "finish", "resolve"])
def test_whoever_writes_of_a_group_waits_for_its_lock(busy, what, monkeypatch):
    """On a server, transactions of other campaigns may write of the same people at the same time."""
    monkeypatch.setattr("airflow_provider_sms.ledger.claims.FINISH_PATIENCE", 2.0)
    ledger, store = busy
    claimed = claim(ledger, people(2))
    writes = {
        "claim": lambda: claim(ledger, people(2, 10)),
        "record": lambda: end(ledger, claimed, NOT_SENT),
        "finish": lambda: ledger.finish([Outcome(claimed.request_id, NOT_SENT)]),
        "resolve": lambda: resolve(ledger._store, claimed.request_id, NOT_SENT, "ann"),
    }
    if what == "resolve":
        end(ledger, claimed, UNKNOWN)
    with store.write(7) as connection:
        store.lock_groups(connection, [enter_group(store, "marketing")])
        with pytest.raises(LedgerError, match="lock timeout"):
            writes[what]()


def test_what_has_nothing_to_do_with_a_group_waits_for_none(busy, clock):
    """An answer is recorded, and a campaign without a cap claims and gives back, whatever a group does."""
    ledger, store = busy
    claimed = claim(ledger, people(1))
    plain = CampaignLedger(ledger._store, "plain", claimant(), clock=clock)
    with store.write(7) as connection:
        store.lock_groups(connection, [enter_group(store, "marketing")])
        end(ledger, claimed, ACCEPTED)
        end(plain, claim(plain, people(3)), NOT_SENT)


def test_a_group_is_entered_once(open_store):
    """Two campaigns may be the first of a group at the same instant."""
    found = []
    stores = [open_store() for _ in range(4)]
    assert in_threads(*(lambda store=store: found.append(enter_group(store, "new")) for store in stores)) == []
    assert (len(found), len(set(found))) == (4, 1)
