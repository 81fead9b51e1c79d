"""One attempt of a campaign with the real client, ledger and sender, like an operator's but without Airflow."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy.engine import URL

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
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.sending.settle import Reconciliation, Settle
from airflow_provider_sms.sending.stop_conditions import CALM_RESPONSES, Caution, StopConditions
from airflow_provider_sms.service.client import SmsClient
from airflow_provider_sms.service.settings import Settings
from airflow_provider_sms.stop_flag import StopFlag
from support.engine import Table
from support.memory import in_memory
from support.postgres import new_database, running_postgres
from support.sending import claimant, people

STORES = ("sqlite", "postgresql")
TOKEN = "sandbox-token-0123"
PACE = 50.0
"""How many times as fast as usual the clocks run of campaigns that reconcile, so that a charge is soon settled."""
POST_SECONDS = 15.0
"""The most seconds that a POST may take in campaigns that reconcile, by these clocks."""


@dataclass(frozen=True, slots=True)
class Ledgers:
    """One ledger, opened anew by each call, as another process would.

    :param url: of SQLAlchemy.
    """

    url: URL

    @classmethod
    def in_file(cls, path):
        """Return a ledger in a SQLite file."""
        return cls(URL.create("sqlite", database=str(path)))

    @property
    def name(self):
        """The kind of database."""
        return self.url.get_backend_name()

    def __call__(self):
        return open_sqlite(Path(str(self.url.database))) if self.name == "sqlite" else open_postgres(self.url)


@contextmanager
def new_ledger(store):
    """Yield an empty ledger of a kind. Leaving the context removes it."""
    if store == "sqlite":
        with tempfile.TemporaryDirectory(prefix="airflow-provider-sms-ledger-", dir=in_memory()) as folder:
            yield Ledgers.in_file(Path(folder) / "ledger.db")
    else:
        with running_postgres() as server:
            yield Ledgers(new_database(server))


@dataclass(frozen=True, slots=True)
class Campaign:
    """People to text once.

    :param base_url: base URL of the service.
    :param start: the first one's number, less 27820000000.
    :param chunk_size: people a request.
    :param reconciles_since: since when the clock runs :data:`PACE` times as fast, seconds since the epoch, of a
        campaign whose lost requests are closed by what the balance proves; None leaves them unknown.
    """

    ledgers: Ledgers
    base_url: str
    name: str
    start: int
    count: int
    chunk_size: int = 4
    reconciles_since: float | None = None

    def now(self):
        """Return the time by the campaign's clock, seconds since the epoch."""
        now, since = time.time(), self.reconciles_since
        return now if since is None else since + (now - since) * PACE

    @property
    def billed(self):
        """An account of this campaign's own, by which an SMS part costs one credit."""
        key = blake2b(self.name.encode(), digest_size=16).hexdigest()
        return Account(key, Prices().total)

    @property
    def messages(self):
        """The messages to all recipients."""
        return people(self.count, self.start)

    @property
    def expected(self):
        """The messages to all recipients, by key."""
        return {m.key: (str(m.destination), m.content) for m in self.messages}


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of an attempt.

    :param summary: ``rows`` and the seven counts.
    :param error: reason for an early end; None without one.
    """

    summary: dict[str, Any]
    error: Exception | None = field(default=None)


def attempt(
    campaign,
    number=1,
    *,
    concurrency=1,
    ahead=lambda: 0.0,
    base_url=None,
    timeout=5.0,
    around=lambda post: post(),
    send_options=lambda: None,
    backoff=None,
    map_index=-1,
    patience=None,
):
    """Send to all recipients who may be texted, and return how the attempt ended; raise only what no attempt survives.

    :param number: number of the attempt.
    :param ahead: seconds that the clock of the ledger is ahead.
    :param base_url: of the service, where another way leads there.
    :param timeout: seconds to wait for a connection, and for an answer.
    :param around: called with each post, in place of it.
    :param send_options: gives those of each request, once it may be posted.
    :param backoff: the waits between attempts of a request; None: hardly any.
    :param map_index: of the task; tasks with another one are others.
    :param patience: with a ledger that is away; None: a little.
    """
    table = Table(campaign.messages)
    reconciled = 0
    reconciles, stop = campaign.reconciles_since is not None, StopFlag()
    stop_conditions = StopConditions(caution=Caution(on=reconciles, calm=CALM_RESPONSES if reconciles else 1))
    error = None
    settings = Settings(
        base_url=base_url or campaign.base_url,
        token=TOKEN,
        client_id=None,
        client_secret=None,
        connect_timeout=timeout,
        timeout=timeout,
    )

    def post(messages):
        return around(lambda: client.send_bulk(messages, send_options=send_options()))

    try:
        with SmsClient(settings, pool_size=concurrency) as client, closing(campaign.ledgers()) as store:
            store.clock = clock = lambda: campaign.now() + ahead()
            # Before the first write, which would wait for minutes where the ledger is away for good.
            waited = []
            store.patience = patience or Patience(3.0, stop, waited.append, lambda: time.monotonic() + sum(waited))
            who = claimant(number, map_index=map_index)
            claimant_id = register(store, who)
            context = {"ti": SimpleNamespace(dag_id="dag", task_id="task")}
            notes = Progress(context, "sms_default", store, claimant_id, campaign.name)
            ledger = CampaignLedger(
                store, campaign.name, who, clock=clock, claimant_id=claimant_id, account=campaign.billed
            )
            notes.note("checking")
            reconciliation = Reconciliation(store, campaign.name, campaign.billed.key, client.get_balance)
            if reconciles:
                with suppress(ServiceError):
                    reconciliation.observe()
            ledger.lapse()
            notes.begin(RowCounts(not_sent=campaign.count), campaign.count)
            pause = lambda seconds: time.sleep(0.001) if reconciles else None  # noqa: E731
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
            notes.note("ended", table.summary(campaign.name, reconciled))
    except SmsError as failure:
        error = failure
    return Ended(table.summary(campaign.name, reconciled), error)
