"""What time it is for a ledger, whatever is done to the clocks of machines."""

from __future__ import annotations

import threading
import time
from decimal import Decimal

import pytest
from sqlalchemy import create_engine, text
from support.sending import Clock, claimant, failing, people

from airflow_provider_sms.exceptions import UnknownOutcomeError
from airflow_provider_sms.ledger.account import Account
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.clocks import HOLD_SECONDS, BootClock, ServerClock, this_boot
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.ledger.transitions import UNRECORDED_SECONDS
from airflow_provider_sms.sending.backoff import Backoff
from airflow_provider_sms.sending.sender import Sender, SendingOptions
from airflow_provider_sms.service.elapsed import elapsed
from airflow_provider_sms.stop_flag import StopFlag

HOUR = 3600.0
CLAIM_SECONDS = 45.0


@pytest.fixture
def step(monkeypatch):
    """Set the machine's clock forward or back, for all that asks for it from then on."""
    real = time.time

    def step(seconds):
        monkeypatch.setattr(time, "time", lambda: real() + seconds)

    return step


@pytest.fixture
def machine(tmp_path):
    """A machine on which processes open one ledger in a file, and whose clock is set by hand."""
    machine = Machine(tmp_path / "ledger.db")
    yield machine
    for each in machine.opened:
        each.close()


class Machine:
    """What one start of a machine has: a clock that people set, and one that counts from its start."""

    def __init__(self, path):
        self._path = path
        self.opened = []
        self.wall = Clock(1_700_000_000.0)
        self.boot_id = "first start"
        self.up = Clock(500.0)

    def open(self, **changes):
        clock = BootClock(changes.get("boot_id", self.boot_id), elapsed=self.up, wall=self.wall)
        self.opened.append(open_sqlite(self._path, clock=clock))
        return self.opened[-1]

    def pass_by(self, seconds):
        self.wall.now += seconds
        self.up.now += seconds

    def start_anew(self):
        self.boot_id, self.up = "second start", Clock(3.0)


def enter_campaign(store, try_number=1):
    return CampaignLedger(store, "c", claimant(try_number))


def claim(ledger, messages, take_over=()):
    chunk = Chunk(
        [m.key for m in messages],
        [m.destination for m in messages],
        {m.key: request_id for m in messages for request_id in take_over},
    )
    return ledger.commit(chunks=[chunk], claim_seconds=CLAIM_SECONDS)[0]


def state_of(ledger, message):
    holders = ledger.holders([message.key])
    return holders[message.key].state if message.key in holders else None


def is_awaited(ledger, message):
    return ledger.holders([message.key])[message.key].awaited


class Looking(CampaignLedger):
    """A try's ledger that says when it has looked at what others hold."""

    def __init__(self, *args, looked, **kwargs):
        super().__init__(*args, **kwargs)
        self._looked = looked
        self._looks = 0

    def holders(self, keys):
        found = super().holders(keys)
        self._looks += 1
        if self._looks > 1:
            self._looked.set()
        return found


@pytest.mark.parametrize("opened", ["before", "after"])
@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_clock_that_is_set_while_requests_are_under_way_texts_nobody_twice(
    open_store, sender, service, step, opened, seconds
):
    """A second try that sends again what is unknown waits for the first one's requests, when its clock was set, too."""
    posting, let_go = threading.Semaphore(0), threading.Event()

    def held_up(messages):
        posting.release()
        assert let_go.wait(60)
        return service(messages)

    send = sender(enter_campaign(open_store()), post=held_up)
    first = threading.Thread(target=send.run, args=([people(20)],))
    first.start()
    try:
        for _ in range(2):
            assert posting.acquire(timeout=60)
        store = open_store() if opened == "before" else None
        step(seconds)
        ledger = Looking(store or open_store(), "c", claimant(2), looked=let_go)
        ledger.lapse()
        again = sender(ledger, resend_unknown=True)
        again.run([people(20)])
    finally:
        let_go.set()
        first.join(60)
    assert (service.duplicates, len(service.taken)) == (0, 20)
    assert (send.counts.accepted, again.counts.already_sent) == (20, 20)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_processes_from_before_and_after_the_clock_was_set_agree(machine, seconds):
    """While a claim is open its deadline stays where it was, for those who open the ledger later as well."""
    before = machine.open()
    claim(enter_campaign(before), people(1))
    machine.wall.now += seconds
    after = machine.open()
    assert after.clock() == before.clock()
    late = enter_campaign(after, 2)
    machine.pass_by(CLAIM_SECONDS - 1)
    late.lapse()
    assert state_of(late, people(1)[0]) == CLAIMED
    machine.pass_by(2)
    assert state_of(late, people(1)[0]) == UNKNOWN


def test_the_ledger_shows_the_time_again_once_nobody_holds_a_claim(machine):
    """A clock that was set counts from the next opening on, for processes that opened the ledger before as well."""
    before = machine.open()
    ledger = enter_campaign(before)
    claimed = claim(ledger, people(1))
    machine.wall.now += HOUR
    machine.open()
    assert before.clock() == machine.wall.now - HOUR
    ledger.commit(outcomes=[Outcome(claimed.request_id, ACCEPTED)])
    assert machine.open().clock() == machine.wall.now
    with before.read():
        assert before.clock() == machine.wall.now
    machine.wall.now += HOUR
    machine.open()
    with before.write(1):
        assert before.clock() == machine.wall.now


def test_what_has_lapsed_stays_unknown_when_the_time_is_set_back(machine):
    """A claim whose deadline passed is no claim again because the ledger shows the machine's time again."""
    ledger = enter_campaign(machine.open())
    claim(ledger, people(1))
    machine.pass_by(HOLD_SECONDS + 1)
    machine.wall.now -= 2 * HOLD_SECONDS
    store = machine.open()
    assert store.clock() == machine.wall.now
    assert state_of(enter_campaign(store, 2), people(1)[0]) == UNKNOWN


@pytest.mark.parametrize("seconds", [60.0, -24 * HOUR])
def test_an_unknown_request_keeps_the_time_for_a_day(machine, seconds):
    """Others wait for its outcome, or for a charge, from its claim on: neither too short nor for the clocks' sake."""
    lost = claim(ledger := enter_campaign(machine.open()), people(1))
    claim(ledger, people(1, 10))
    machine.pass_by(1)
    ledger.commit(outcomes=[Outcome(lost.request_id, UNKNOWN)])
    machine.pass_by(CLAIM_SECONDS)
    before = machine.opened[0].clock()
    machine.wall.now += seconds
    other = enter_campaign(machine.open(), 2)
    assert other.clock() == before
    other.lapse()
    assert is_awaited(other, people(1, 10)[0])
    machine.pass_by(UNRECORDED_SECONDS - CLAIM_SECONDS)
    assert not is_awaited(other, people(1, 10)[0])
    assert machine.open().clock() == before + UNRECORDED_SECONDS - CLAIM_SECONDS
    machine.pass_by(HOLD_SECONDS)
    assert machine.open().clock() == machine.wall.now


def test_an_unknown_request_of_a_time_to_come_is_waited_for_no_longer_than_any_other(open_store, clock):
    """Nor does anybody wait for its charge: nothing tells any more when that would have been."""
    store = open_store()
    account = Account("k" * 32, Decimal(1), Decimal(1))
    first = CampaignLedger(store, "c", claimant(1), clock=clock, account=account)
    claimed = claim(first, people(1))
    clock.now += CLAIM_SECONDS + 1
    other = CampaignLedger(store, "c", claimant(2), clock=clock)
    other.lapse()
    clock.now -= 24 * HOUR
    assert is_awaited(other, people(1)[0])
    clock.now += UNRECORDED_SECONDS + 1
    assert not is_awaited(other, people(1)[0])
    with store.read() as connection:
        of_request = text("SELECT account, deadline FROM sms_request WHERE id = :id")
        kept, deadline = connection.execute(of_request, {"id": claimed.request_id}).one()
    assert (kept, deadline < clock()) == (None, True)


def test_a_process_that_was_stopped_posts_nothing_although_the_time_is_set_back(machine, service):
    """Its claim has lapsed, and its people were texted by another: the ledger's time does not bring the claim back."""

    def sender_of(store, try_number, **options):
        ledger = CampaignLedger(store, "c", claimant(try_number), elapsed=machine.up)
        options = SendingOptions(concurrency=1, backoff=Backoff(attempts=4, base=0.001), **options)
        return Sender(
            ledger, service, post_seconds=35.0, ask=ask, options=options, stop=StopFlag(), sleep=lambda seconds: None
        )

    def ask():
        # The process is stopped, with the answer to its free question in its hands.
        machine.pass_by(200)
        sender_of(machine.open(), 2, resend_unknown=True).run([people(20)])
        machine.pass_by(HOLD_SECONDS)
        machine.wall.now -= 3 * HOLD_SECONDS
        machine.open()
        with machine.opened[0].write(1):
            assert machine.opened[0].clock() == machine.wall.now

    service.script = [failing(UnknownOutcomeError("lost"))]
    send = sender_of(machine.open(), 1, chunk_size=10)
    send.run([people(20)])
    assert (service.duplicates, len(service.taken)) == (0, 20)
    # Its first response was lost before it was stopped; of the other people it sees that they were texted meanwhile.
    counts = send.counts
    assert (counts.accepted, counts.unknown, counts.not_sent, counts.already_sent) == (0, 10, 0, 10)
    assert send.error is None


def test_a_machine_that_starts_anew_has_its_clocks_time(machine):
    """Time counts from the new start, and what the old one's processes had claimed is unknown past its deadline."""
    claim(enter_campaign(machine.open()), people(1))
    machine.pass_by(CLAIM_SECONDS + 1)
    machine.start_anew()
    store = machine.open()
    assert store.clock() == machine.wall.now
    assert state_of(enter_campaign(store, 2), people(1)[0]) == UNKNOWN


def test_a_system_that_tells_no_start_from_another_goes_by_its_clock(machine):
    """Without a clock that counts from the machine's start the time is the machine's own."""
    store = machine.open(boot_id=None)
    assert store.clock() == machine.wall.now
    machine.wall.now += HOUR
    with store.read():
        assert store.clock() == machine.wall.now
    with store.write(1) as connection:
        assert connection.execute(text("SELECT count(*) FROM sms_boot_clock")).scalar() == 0


def test_this_machine_tells_its_start():
    """What tells one start of a machine from others stays the same, and is known wherever the clock is there."""
    assert this_boot() == this_boot()
    assert (this_boot() is None) == (not hasattr(time, "CLOCK_BOOTTIME"))


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no such clock")
def test_time_elapses_while_the_machine_sleeps(monkeypatch):
    """The clock is the one that counts from the machine's start: others stand still in a sleep, or can be set."""
    slept = {time.CLOCK_BOOTTIME: 3700.0, time.CLOCK_MONOTONIC: 100.0}
    monkeypatch.setattr(time, "clock_gettime", slept.__getitem__)
    assert elapsed() == 3700.0


def test_a_servers_time_is_that_of_when_the_lock_was_had(postgres_url):
    """A deadline counts from the end of the wait for others, by the server's clock alone."""
    stopped = Clock(0.0)
    engine = create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    store, other = open_postgres(postgres_url, clock=ServerClock(stopped)), open_postgres(postgres_url)
    found = []

    def write():
        with store.write(7):
            found.append(store.clock())

    waiting = threading.Thread(target=write)
    with engine.connect() as server:
        with other.write(7):
            waiting.start()
            waits = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            while not server.execute(waits).scalar():
                time.sleep(0.01)
            released = server.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar()
        waiting.join(60)
    assert found[0] >= float(released)
    engine.dispose()
    store.close()
    other.close()


def test_a_server_is_asked_again_where_its_answer_may_be_old(postgres_url):
    """A machine that slept before it read the answer does not take the time of then for that of now."""
    readings = iter([0.0, HOUR])
    clock = ServerClock(lambda: next(readings, HOUR))
    engine = create_engine(postgres_url)
    with engine.connect() as connection:
        clock.read(connection, text("SELECT extract(epoch FROM clock_timestamp()) - 3600"))
        now = float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar())
    assert clock() == pytest.approx(now, abs=60)
    engine.dispose()


def test_between_transactions_time_elapses_by_a_clock_that_nobody_sets(postgres_url, step):
    """The server's time and what elapsed here since: however this machine's clock is set."""
    store = open_postgres(postgres_url)
    began, before = elapsed(), store.clock()
    step(HOUR)
    now = store.clock()
    assert before <= now <= before + (elapsed() - began) + 0.001
    store.close()


@pytest.fixture
def ahead(open_store, clock):
    """A claim that was made by a clock an hour ahead, since set right."""
    store = open_store()
    clock.now += HOUR
    claimed = claim(CampaignLedger(store, "c", claimant(1), clock=clock), people(1))
    clock.now -= HOUR
    return store, claimed


def test_a_claim_of_a_time_to_come_is_waited_for_no_longer_than_any_other(ahead, clock):
    """It counts as made when it is first seen: its process may live, and nobody waits for the clocks' difference."""
    other = CampaignLedger(ahead[0], "c", claimant(2), clock=clock)
    other.lapse()
    clock.now += CLAIM_SECONDS - 1
    assert state_of(other, people(1)[0]) == CLAIMED
    clock.now += 2
    assert state_of(other, people(1)[0]) == UNKNOWN


def test_a_claim_that_comes_to_lie_ahead_while_it_is_waited_for_is_set_right(ahead, clock):
    """A server's successor may have another clock: whoever looks sees to it, not only a try that begins."""
    other = CampaignLedger(ahead[0], "c", claimant(2), clock=clock)
    assert state_of(other, people(1)[0]) == CLAIMED
    clock.now += CLAIM_SECONDS + 1
    assert state_of(other, people(1)[0]) == UNKNOWN


def test_a_claim_of_a_time_to_come_is_not_taken_over_at_once(ahead, clock):
    """Its process may be posting just now."""
    store, claimed = ahead
    other = CampaignLedger(store, "c", claimant(2), clock=clock)
    assert claim(other, people(1), [claimed.request_id]).request_id is None
    clock.now += CLAIM_SECONDS + 1
    assert list(claim(other, people(1), [claimed.request_id]).won) == [0]
