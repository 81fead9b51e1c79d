"""One attempt of a campaign with the real client, ledger and sender, like an operator's but without Airflow."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import URL, make_url

from airflow_provider_sms.exceptions import LedgerError, ServiceError, SmsError
from airflow_provider_sms.execution.progress import Progress
from airflow_provider_sms.ledger.account import Account
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.reporting.row_counts import RowCounts
from airflow_provider_sms.sending.outcomes import Backoff
from airflow_provider_sms.sending.sender import MARGIN_SECONDS, Sender
from airflow_provider_sms.sending.settle import Reconciliation, Settle
from airflow_provider_sms.sending.stop_conditions import CALM_RESPONSES, Caution
from airflow_provider_sms.service.client import SmsClient
from airflow_provider_sms.stop_flag import StopFlag
from support.engine import Table, Text
from support.faults.halts import NEVER, Halts
from support.sending import claimant, people

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.messages.message import Outgoing
    from airflow_provider_sms.service.responses import SendResponse
    from support.faults.verdict import Sent

TOKEN = "sandbox-token-0123"
PACE = 50.0
"""How many times as fast as usual the clocks run of campaigns that reconcile, so that a charge is soon settled."""
POST_SECONDS = 15.0
"""The most seconds that a POST may take in campaigns that reconcile, by these clocks."""
SETTLE_SECONDS = POST_SECONDS + MARGIN_SECONDS
"""Seconds after its claim in which the account may be charged for a request without a response, by these clocks."""


@dataclass(frozen=True, slots=True)
class Ledgers:
    """One ledger, opened anew by each call, as another process would.

    :param url: of SQLAlchemy.
    """

    url: URL

    @classmethod
    def in_file(cls, path: Path) -> Ledgers:
        """Return a ledger in a SQLite file."""
        return cls(URL.create("sqlite", database=str(path)))

    @classmethod
    def on_server(cls, url: URL | str) -> Ledgers:
        """Return a ledger in a PostgreSQL database."""
        return cls(make_url(url))

    @property
    def name(self) -> str:
        """The kind of database."""
        return self.url.get_backend_name()

    def __call__(self, *, busy_seconds: float = 60.0) -> LedgerBackend:
        if self.name == "sqlite":
            return open_sqlite(Path(str(self.url.database)), busy_seconds=busy_seconds)
        return open_postgres(self.url, busy_seconds=busy_seconds)


@dataclass(frozen=True, slots=True)
class Campaign:
    """People to text once.

    :param base_url: base URL of the service.
    :param start: the first one's number, less 27820000000.
    :param chunk_size: people a request.
    :param of_table: whether messages have the keys that an operator gives them.
    :param reconciles_since: since when the clock runs :data:`PACE` times as fast, seconds since the epoch, of a
        campaign whose lost requests are closed by what the balance proves; None leaves them unknown.
    :param account: what identifies the account that is charged; None means an account of this campaign's own.
    """

    ledgers: Ledgers
    base_url: str
    name: str
    start: int
    count: int
    chunk_size: int = 4
    of_table: bool = False
    reconciles_since: float | None = None
    account: str | None = None

    def now(self) -> float:
        """Return the time by the campaign's clock, seconds since the epoch."""
        now, since = time.time(), self.reconciles_since
        return now if since is None else since + (now - since) * PACE

    @property
    def billed(self) -> Account:
        """The account that is charged, by which an SMS part costs one credit."""
        key = blake2b((self.account or self.name).encode(), digest_size=16).hexdigest()
        return Account(key, Prices().total)

    @property
    def messages(self) -> list[Text]:
        """The messages to all recipients."""
        messages = people(self.count, self.start)
        if self.of_table:
            from support.keys import message_keys

            keys = message_keys([str(m.destination) for m in messages], [m.content for m in messages])
            return [m._replace(key=key) for m, key in zip(messages, keys, strict=True)]
        return messages

    @property
    def expected(self) -> dict[bytes, Sent]:
        """The messages to all recipients, by key."""
        return {m.key: (str(m.destination), m.content) for m in self.messages}


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of an attempt.

    :param summary: ``rows`` and the seven counts.
    :param error: reason for an early end; None without one.
    :param halted: whether it ended early to wait.
    :param whole: whether nobody else has sent anything: then all that was sent is in the summary, as this try's own.
    """

    summary: dict[str, Any]
    error: Exception | None = field(default=None)
    halted: bool = False
    whole: bool = False


def attempt(
    campaign: Campaign,
    number: int = 1,
    *,
    concurrency: int = 1,
    ahead: Callable[[], float] = lambda: 0.0,
    base_url: str | None = None,
    timeout: float = 5.0,
    verify: bool | str = True,
    busy_seconds: float = 60.0,
    before_post: Callable[[], object] = lambda: None,
    send_options: Callable[[], dict[str, Any] | None] = lambda: None,
    halts: Halts = NEVER,
    backoff: Backoff | None = None,
    bold: bool = False,
) -> Ended:
    """Send to all recipients who may be texted, and return how the attempt ended; raise only what no attempt survives.

    :param number: number of the attempt.
    :param ahead: seconds that the clock of the ledger is ahead.
    :param base_url: of the service, where another way leads there.
    :param timeout: seconds to wait for a connection, and for an answer.
    :param verify: as the client takes it.
    :param busy_seconds: how long to wait for others to release the ledger.
    :param before_post: called before each request.
    :param send_options: gives those of each request, once it may be posted.
    :param halts: the point at which it ends early to wait.
    :param backoff: the waits between attempts of a request; None: hardly any.
    :param bold: whether requests go at once from the first one on, though the campaign reconciles.
    """
    table = Table(campaign.messages)
    reconciled = 0
    stop_conditions = halts.stop_conditions(campaign.count)
    reconciles, stop = campaign.reconciles_since is not None, StopFlag()
    error: Exception | None = None
    if reconciles:
        stop_conditions.caution = Caution(on=not bold, calm=CALM_RESPONSES)

    def post(messages: Outgoing) -> SendResponse:
        before_post()
        return client.send_bulk(messages, send_options=send_options())

    try:
        with (
            SmsClient(
                base_url or campaign.base_url,
                token=TOKEN,
                connect_timeout=timeout,
                timeout=timeout,
                verify=verify,
                pool_size=concurrency,
            ) as client,
            closing(campaign.ledgers(busy_seconds=busy_seconds)) as store,
        ):
            store.clock = clock = lambda: campaign.now() + ahead()
            who = claimant(number)
            claimant_id = register(store, who)
            context: Any = {"ti": SimpleNamespace(dag_id="dag", task_id="task")}
            notes = Progress(context, "sms_default", store, claimant_id, campaign.name)
            ledger = CampaignLedger(
                store,
                campaign.name,
                who,
                clock=clock,
                claimant_id=claimant_id,
                account=campaign.billed,
            )
            notes.note("checking")
            reconciliation = Reconciliation(store, campaign.name, campaign.billed.key, client.get_balance)
            if reconciles:
                with suppress(ServiceError):
                    reconciliation.observe()
            ledger.lapse()
            notes.begin(RowCounts(not_sent=campaign.count), campaign.count)
            pause: Callable[[float], None] = lambda seconds: time.sleep(0.001) if reconciles else None  # noqa: E731
            store.patience = Patience(3.0, stop, pause)
            settle = Settle(ledger, reconciliation, "reconcile" if reconciles else "fail", stop, pause)
            sender = Sender(
                ledger,
                post,
                post_seconds=max(POST_SECONDS if reconciles else 0.0, client.longest_call),
                ask=reconciliation.observe if reconciles else client.get_balance,
                stop=stop,
                concurrency=concurrency,
                reconciles=reconciles,
                backoff=backoff or Backoff(attempts=4, base=0.001, longest=0.001),
                stop_conditions=stop_conditions,
                holds=settle.holds,
            )
            try:
                table.send(ledger, sender, settle, campaign.chunk_size)
            finally:
                reconciled = reconciliation.reconciled
            error = sender.error
            try:
                table.count(ledger)
            except LedgerError as failure:
                error = error or failure
                table.count_without_ledger()
            if stop_conditions.stop_reason is None:
                notes.note("ended", table.summary(campaign.name, reconciled))
    except SmsError as failure:
        error = failure
    return Ended(table.summary(campaign.name, reconciled), error, halted=stop_conditions.stop_reason is not None)
