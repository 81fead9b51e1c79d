"""One attempt of a campaign: the real ledger, client and sender, assembled like the operator does."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import make_url

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import Claimant
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.messages.parts import count_parts
from airflow_provider_sms.sending.outcomes import Backoff
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.sending.settle import Reconciliation, Settle
from airflow_provider_sms.service.client import SmsClient
from airflow_provider_sms.stop_flag import StopFlag
from support.engine import Table, Text
from support.keys import message_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.messages.message import Outgoing
    from airflow_provider_sms.sending.stop_conditions import StopConditions
    from airflow_provider_sms.service.responses import SendResponse

TOKEN = "sandbox-token-0123"
POLL_SECONDS = 0.002
"""Seconds between checks of other senders' claims; the usual interval would take most of the time."""


class Clock:
    """The ledger's clock, which can be moved forward and back."""

    def __init__(self, ahead: float = 0.0) -> None:
        self.ahead = ahead

    def __call__(self) -> float:
        return time.time() + self.ahead

    def jump(self, seconds: float) -> None:
        self.ahead += seconds


def open_by_url(written: str) -> LedgerBackend:
    """Open the ledger that another process has opened."""
    url = make_url(written)
    return open_sqlite(Path(str(url.database))) if url.get_backend_name() == "sqlite" else open_postgres(url)


def text_of(campaign: str) -> str:
    """Return a campaign's text, which identifies the campaign in the witness."""
    return f"Hi from {campaign}"


def outgoing(campaign: str, rows: Sequence[str]) -> list[Text]:
    """Return the messages of a table, with the operator's keys."""
    texts = [text_of(campaign)] * len(rows)
    return [
        Text(key, number, text, count_parts(text))
        for key, number, text in zip(message_keys(rows, texts), rows, texts, strict=True)
    ]


class LookingLedger(CampaignLedger):
    """A ledger whose clock advances quickly while it waits for others.

    :param tick: seconds by which the clock advances with every check.
    """

    tick = 0.0

    def states(self, request_ids):
        if self.tick:
            self.clock.jump(self.tick)
        return super().states(request_ids)


class Sending:
    """One try of a campaign: the real ledger, client and sender, put together as the operator does it.

    :param number: number of the attempt.
    :param around: function that is called with each post in place of it.
    """

    def __init__(
        self,
        base_url: str,
        store: LedgerBackend,
        campaign: str,
        number: int,
        *,
        map_index: int = -1,
        clock: Clock | None = None,
        tick: float = 0.0,
        timeout: float = 30.0,
        stop: StopFlag | None = None,
        around: Callable[[Callable[[], SendResponse]], SendResponse] | None = None,
        stop_conditions: StopConditions | None = None,
        **options: Any,
    ) -> None:
        self.campaign = campaign
        self.number = number
        self._closing = ExitStack()
        who = Claimant("dag", "send", "run", map_index, number, "host", os.getpid())
        self.ledger = LookingLedger(store, campaign, who, clock=clock)
        self.ledger.tick = tick
        self.ledger.lapse()
        client = self._closing.enter_context(
            SmsClient(base_url, token=TOKEN, connect_timeout=5.0, timeout=timeout, pool_size=options["concurrency"])
        )

        def post(messages: Outgoing) -> SendResponse:
            return client.send_bulk(messages) if around is None else around(lambda: client.send_bulk(messages))

        self.stop = stop or StopFlag()
        on_unknown, self._chunk_size = options.pop("on_unknown", "fail"), options.pop("chunk_size", 100)
        store.patience = Patience(stop=self.stop, sleep=lambda _: None)
        reconciliation = Reconciliation(store, campaign, "account", client.get_balance)
        self._settle = Settle(self.ledger, reconciliation, on_unknown, self.stop, lambda _: None)
        self.sender = Sender(
            self.ledger,
            post,
            post_seconds=client.longest_call,
            stop=self.stop,
            reconciles=on_unknown == "reconcile",
            backoff=Backoff(attempts=3, base=0.001),
            **options,
            stop_conditions=stop_conditions,
        )
        self.table = Table(())

    def run(self, rows: Sequence[str]) -> None:
        """Send a table."""
        self.table = Table(outgoing(self.campaign, rows))
        with self._closing:
            self.table.send(self.ledger, self.sender, self._settle, self._chunk_size)
        try:
            self.table.count(self.ledger)
        except LedgerError:
            self.table.count_without_ledger()

    @property
    def summary(self) -> dict[str, Any]:
        return self.table.summary(self.campaign)

    @property
    def ended(self) -> dict[str, Any]:
        """The end of the attempt, in a form that another process can read."""
        error = self.sender.error
        return {
            "accepted": self.table.counts.accepted,
            "miscounted": self.miscounted,
            "error": None if error is None else type(error).__name__,
        }

    @property
    def miscounted(self) -> int:
        """Rows in no count."""
        return abs(self.table.counts.rows - self.table.rows)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the logs of thousands of attempts out of the console."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
