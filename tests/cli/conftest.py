from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass

import pytest
from support.ledger_fixtures import configured_store
from support.sending import EVENT, claim, claimant, close, people
from support.versions import HAS_COMMANDS_OF_PROVIDERS

from airflow_provider_sms.cli.main import main
from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.account import Account
from airflow_provider_sms.ledger.attempts import note_progress, register
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN
from airflow_provider_sms.planning.prices import Prices

store = configured_store


@dataclass
class Said:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def data(self):
        return json.loads(self.out)


@pytest.fixture
def file_store(ledger_path, airflow_home):
    """An empty ledger in a file, for what has nothing to do with the kind of ledger."""
    with closing(open_ledger(None)) as store:
        yield store


@pytest.fixture
def ledger(capsys):
    """Run a command of the console script in this process."""

    def ledger(*arguments):
        capsys.readouterr()  # what was logged when the ledger was made
        try:
            main([*map(str, arguments)])
        except SystemExit as ended:
            status = ended.code
        else:
            status = 0
        return Said(status, *capsys.readouterr())

    return ledger


@pytest.fixture
def airflow(airflow_home):
    """Run a command of ``airflow`` as a process."""

    def airflow(*arguments, **options):
        command = [sys.executable, "-m", "airflow", *map(str, arguments)]
        done = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=False, **options)
        return Said(done.returncode, done.stdout, done.stderr)

    return airflow


@pytest.fixture
def console_script():
    """Return the command that the console script is."""
    return [sys.executable, "-c", f"import sys; from {main.__module__} import main; sys.exit(main())"]


@pytest.fixture
def ledger_command(airflow, console_script):
    """Run a command of the ledger as one of Airflow, or by the console script if Airflow has none of providers."""
    if HAS_COMMANDS_OF_PROVIDERS:
        return lambda *arguments: airflow("sms", *arguments)

    def ledger_command(*arguments):
        command = [*console_script, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return Said(done.returncode, done.stdout, done.stderr)

    return ledger_command


def send(store, messages, state=ACCEPTED, *, campaign="spring", at=None, try_number=1, **changes):
    """Send messages as an attempt of a task would; a state of None leaves the claim open.

    :param changes: the fields of the claimant; ``reason`` of what is unknown; ``account``, by its key, and ``conn_id``;
        ``taken``, the messages that the response says the service took.
    """
    clock = time.time if at is None else lambda: at
    reason, taken, account, conn_id = (changes.pop(name, None) for name in ("reason", "taken", "account", "conn_id"))
    who = claimant(try_number, **changes)
    claimant_id = register(store, who, None if at is None else clock)
    if at is None or conn_id:  # a purge keeps what was in use a moment ago
        note_progress(store, campaign, claimant_id, "ended" if state == ACCEPTED else "failed", conn_id=conn_id)
    priced = None if account is None else Account(account, Prices().total)
    sending = CampaignLedger(store, campaign, who, clock=clock, claimant_id=claimant_id, account=priced)
    request_id = claim(sending, messages)
    if state == ACCEPTED:
        close(sending, request_id, event_id=EVENT, parts=len(messages), cost="1.10", messages=taken)
    elif state is not None:
        close(sending, request_id, state, reason=(reason or "read timeout") if state == UNKNOWN else None)
    return request_id


@pytest.fixture
def sent(store):
    """Send on the ledger of this test."""
    return lambda *arguments, **options: send(store, *arguments, **options)


@pytest.fixture
def sent_to_file(file_store):
    return lambda *arguments, **options: send(file_store, *arguments, **options)


@pytest.fixture
def holders(store):
    """Return the states of these people's messages, as a new attempt sees them."""

    def holders(messages, campaign="spring"):
        sending = CampaignLedger(store, campaign, claimant(9, dag_id="looks"))
        return {holder.state for holder in sending.holders([m.key for m in messages]).values()}

    return holders


class Terminal:
    """A terminal at which somebody answers: with a text, once a function has been called, or not at all."""

    def __init__(self, answer):
        self.answer = answer

    def isatty(self):
        return True

    def readline(self):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer() if callable(self.answer) else self.answer


@pytest.fixture
def at_terminal(monkeypatch):
    """Make a person answer at the terminal."""
    return lambda answer: monkeypatch.setattr(sys, "stdin", Terminal(answer))


@pytest.fixture
def somebody():
    return people(1)[0].destination
