"""The environment of a section of the suite: one service with its witness, and one ledger."""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from sqlalchemy import text

from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN
from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from airflow_provider_sms.sending import schedule, sender, settle
from support.faults.plans import OPTED_OUT
from support.faults.sendings import POLL_SECONDS, TOKEN, outgoing, quiet, text_of
from support.faults.verdict import Figures, judge, read_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.sandbox.server import SandboxHandle
    from support.faults.sendings import Sending

_nonce = itertools.count()

_OF_TRY = text(
    "SELECT m.message_key, r.state FROM sms_campaign c JOIN sms_message m ON m.campaign_id = c.id "
    "JOIN sms_request r ON r.id = m.request_id JOIN sms_attempt k ON k.id = r.attempt_id "
    "WHERE c.name = :name AND k.try_number = :number"
)


class Witness:
    """The service's witness, read incrementally."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self.texts: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)

    def of(self, text: str) -> Counter[tuple[str, str]]:
        """Return how often each person was sent a text."""
        self._read_on()
        return self.texts[text]

    def _read_on(self) -> None:
        with self._path.open("rb") as log:
            log.seek(self._read)
            lines = log.read()
        whole = lines[: lines.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            entry = json.loads(line)
            self.texts[entry["content"]][entry["destination"], entry["content"]] += 1


class Stage:
    """One service, one witness and one ledger for any number of cases, each a campaign with its own text."""

    def __init__(
        self, sandbox: SandboxHandle, witness: Path, open_store: Callable[[], LedgerBackend], closing: ExitStack
    ):
        self.sandbox = sandbox
        self._witness = Witness(witness)
        self._open_store = open_store
        self._closing = closing
        self._judged: list[tuple[str, Sequence[str], Figures]] = []
        self.reader = self.open_store()
        engine_url = self.reader._engine.url
        self.kind = engine_url.get_backend_name()
        self.url = engine_url.render_as_string(hide_password=False)

    def open_store(self) -> LedgerBackend:
        """Open one more connection to the ledger, until the end of the stage."""
        store = self._open_store()
        self._closing.callback(store.close)
        return store

    def new_campaign(self, name: str) -> str:
        """Begin a case with a reset of the service."""
        self.sandbox.state.reset()
        return f"{name} {os.getpid()}.{next(_nonce)}"

    def witnessed(self, text: str) -> Counter[tuple[str, str]]:
        """Return how often each person was sent a text."""
        return self._witness.of(text)

    def states_of(self, campaign: str) -> dict[bytes, str]:
        """Return the state of each claimed message of a campaign."""
        return read_ledger(self.reader._engine, campaign)

    def judge(self, campaign: str, rows: Sequence[str], last: Sending | None = None) -> Figures:
        """Judge a case.

        :param last: the last attempt, if it had neither faults nor claims of others to wait for; None otherwise.
        """
        figures = self._judge(campaign, rows, last)
        self._judged.append((campaign, rows, figures))
        return figures

    def _judge(self, campaign: str, rows: Sequence[str], last: Sending | None = None) -> Figures:
        states = self.states_of(campaign)
        messages = outgoing(campaign, rows)
        expected = {m.key: (str(m.destination), m.content) for m in messages}
        figures = judge(
            self._witness.of(text_of(campaign)),
            states,
            expected,
            # Its counts are of rows, the judge's of messages: they agree for tables without duplicates.
            summary=last.summary if last is not None and len(expected) == len(rows) else None,
            left_out=OPTED_OUT,
        )
        if last is None:
            return figures
        counts, its = last.table.counts, self._of_try(campaign, last.number)
        unknown = sum(states.get(key) == UNKNOWN for key in expected)
        accepted = sum(state == ACCEPTED for state in its.values())
        miscounted = abs(counts.unknown - unknown) + abs(counts.accepted - accepted)
        miscounted += max(0, counts.not_sent - last.table.sums.none_taken)
        return figures + Figures(lost=miscounted + last.miscounted + (last.sender.error is not None))

    def _of_try(self, campaign: str, number: int) -> dict[bytes, str]:
        """Return the state of each message that an attempt holds, over all its legs."""
        with self.reader._engine.connect() as connection:
            rows = connection.execute(_OF_TRY, {"name": campaign, "number": number})
            return {bytes(key): state for key, state in rows}

    def came_late(self) -> Figures:
        """Judge every case again, because late messages may have reached the witness; no case counts twice."""
        late = Figures()
        for campaign, rows, before in self._judged:
            now = self._judge(campaign, rows)
            late += Figures(
                duplicates=now.duplicates - before.duplicates,
                wrongly_not_sent=max(0, now.wrongly_not_sent - before.wrongly_not_sent),
            )
        return late


def play_all(
    open_store: Callable[[], LedgerBackend],
    play: Callable[[Stage, int], Figures],
    numbers: Iterable[int],
    again: Callable[[Stage, int], str],
) -> Figures:
    """Run cases on a new stage, and print those that broke the promise.

    :param open_store: function that opens the shared ledger, like one more process.
    :param play: function that runs the case of a number.
    :param again: function that returns how to replay a case.
    """
    total = Figures()
    with ExitStack() as closing:
        closing.enter_context(quiet())
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="airflow-provider-sms-faults-")))
        witness = folder / "witness.jsonl"
        closing.enter_context(patch.object(sender, "POLL_SECONDS", POLL_SECONDS))
        closing.enter_context(patch.object(settle, "POLL_SECONDS", POLL_SECONDS))
        closing.enter_context(patch.object(sender, "DEFER_SECONDS", POLL_SECONDS))
        closing.enter_context(patch.object(schedule, "DEFER_SECONDS", POLL_SECONDS))
        config = SandboxConfig(token=TOKEN, balance=10**9, log=witness, opted_out=OPTED_OUT)
        with running_sandbox(config) as sandbox:
            stage = Stage(sandbox, witness, open_store, closing)
            for number in numbers:
                try:
                    figures = play(stage, number)
                except Exception:
                    _print("it did not end as it should", again(stage, number))
                    raise
                if figures.broken:
                    _print(figures, again(stage, number))
                total += figures
        return total + stage.came_late()


def _print(what: Any, again: str) -> None:
    print(f"{what}\n  again: {again}", file=sys.stderr, flush=True)  # noqa: T201  # which one broke is wanted
