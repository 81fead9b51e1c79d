"""A service, a clock and recipients for the tests of sending."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.model import ACCEPTED, Claimant, Outcome
from airflow_provider_sms.messages.parts import count_parts
from airflow_provider_sms.reporting.row_counts import COUNTS
from airflow_provider_sms.service.responses import parse_send_response
from support.engine import Table, Text
from support.keys import request_of

KEY = "0" * 32
"""The key of the account that tests send with."""
EVENT = 9_007_199_254_740_993
"""An event id that a float would round."""


class Sending:
    """One attempt: checks messages, sends those that are free, and counts them all."""

    def __init__(self, ledger, sender, settle):
        self.ledger = ledger
        self.sender = sender
        self.settle = settle
        self.stop_conditions = sender.stop_conditions

    def run(self, messages):
        table = Table(messages)
        table.send(self.ledger, self.sender, self.settle, chunk_size=10)
        try:
            table.count(self.ledger)
        except LedgerError:
            table.count_without_ledger()
        self.counts, self.sums = table.counts, table.sums

    @property
    def error(self):
        return self.sender.error


class Clock:
    """A clock that tests move by hand."""

    def __init__(self, now=1_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


class Service:
    """A service that accepts messages, and handles each request as the test has scripted."""

    def __init__(self):
        self.taken = Counter()
        self.requests = []
        self.script = []
        self.lock = threading.Lock()
        self.before_each = lambda messages: None

    def __call__(self, messages):
        self.before_each(messages)
        with self.lock:
            number = len(self.requests)
            self.requests.append(messages.destinations)
            step = self.script.pop(0) if self.script else None
        if step is not None:
            return step(self, messages, number)
        return self.take(messages, number)

    def take(self, messages, number=0, left_out=0):
        with self.lock:
            self.taken.update(messages.destinations[left_out:])
        return answer(EVENT + number, len(messages) - left_out, left_out)

    @property
    def duplicates(self):
        return sum(count - 1 for count in self.taken.values())


def answer(event_id, messages, left_out=0):
    counts = {"Messages": messages, "Parts": messages, "ErrorReport": {"OptedOuts": left_out}}
    body = {"Cost": 1.5 * messages, "RemainingBalance": 1000, "EventId": event_id, **counts}
    return parse_send_response(json.dumps(body).encode())


def failing(error, *, accepted=False):
    """Script one request that ends in an error, before or after the service accepted it."""

    def step(service, messages, number):
        if accepted:
            service.take(messages, number)
        raise error

    return step


def people(count, start=0):
    return [outgoing(27_820_000_000 + n) for n in range(start, start + count)]


def chunk_of(messages, parts=()):
    """Return messages as the ledger claims them."""
    return request_of([m.key for m in messages], [m.destination for m in messages], parts)


def between_lookup_and_claim(ledger, happens):
    """Let something happen once in a ledger, just before a claim."""
    waiting, commit = [happens], ledger.commit

    def committing(**what):
        if what["chunks"] and waiting:
            waiting.pop()()
        return commit(**what)

    ledger.commit = committing
    return ledger


def counted(sending):
    """Return the counts of a send that are not zero, by name."""
    return {name: getattr(sending.counts, name) for name in COUNTS if getattr(sending.counts, name)}


def outgoing(number, text="Hi"):
    key = hashlib.blake2b(f"{number}\n{text}".encode(), digest_size=16).digest()
    return Text(key, str(number), text, count_parts(text))


def claimant(try_number=1, **changes):
    fields = {"dag_id": "d", "task_id": "t", "run_id": "r", "map_index": -1, "host": "h", "pid": 1}
    return Claimant(**{**fields, **changes}, try_number=try_number)


def claim(ledger, messages, seconds=60.0):
    """Claim messages in one request, and return its id."""
    return ledger.commit(chunks=[chunk_of(messages)], claim_seconds=seconds)[0].request_id


def close(ledger, request_id, state=ACCEPTED, **fields):
    """Record the outcome of a request."""
    ledger.commit(outcomes=[Outcome(request_id, state, **fields)])


def accept(ledger, messages):
    """Claim messages, and record that the service took them."""
    request_id = claim(ledger, messages)
    close(ledger, request_id, event_id=EVENT, messages=len(messages), parts=len(messages), cost="1.10")
    return request_id
