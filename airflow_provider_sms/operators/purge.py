"""The operator that forgets what the ledger has kept for long enough."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperator
from pydantic import Field

from airflow_provider_sms.arguments import Arguments
from airflow_provider_sms.exceptions import StoppedError
from airflow_provider_sms.execution.errors import airflow_errors
from airflow_provider_sms.formatting import iso
from airflow_provider_sms.operators.options import LedgerConnection, Whole, check_loaded, read_arguments
from airflow_provider_sms.stop_flag import StopFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.providers.common.compat.sdk import Context

_DAY = 86_400


class PurgeOptions(Arguments):
    """The checked arguments of a :class:`PurgeLedgerOperator`."""

    retention_days: Whole | None = Field(ge=0, description="a whole number of days, 0 for no end, or None")
    ledger_conn_id: LedgerConnection


class PurgeLedgerOperator(BaseOperator):
    """Forget campaigns, with everybody whom they texted, and balances, once they are older than the retention.

    It forgets what ``airflow-sms purge`` forgets, and keeps the same: campaigns with unknown requests or
    requests under way, paused campaigns, and campaigns for which a task is waiting. A forgotten campaign protects
    nobody: a task that runs again under its name texts everybody again. Sends under way go on.

    Returns counts of what was forgotten, and of the campaigns that were kept. Running it again forgets nothing more.

    :param retention_days: whole days without activity after which a campaign is forgotten. None means ``[sms]
        retention_days``; 0 means that nothing is forgotten.
    :param ledger_conn_id: an Airflow connection to PostgreSQL that holds the ledger. None means ``[sms]
        ledger_conn_id``, else a file on this machine. (templated)
    """

    template_fields: Sequence[str] = ("ledger_conn_id",)
    ui_color = "#e3f2ee"

    def __init__(self, *, retention_days: int | None = None, ledger_conn_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.retention_days = retention_days
        self.ledger_conn_id = ledger_conn_id
        self.stop_signal = StopFlag()
        check_loaded(self, PurgeOptions)

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002  # Airflow's
        """Forget what is older than the retention.

        :raises AirflowFailException: a retry could not help.
        :raises AirflowException: a retry could help.
        """
        self.stop_signal = StopFlag()
        with airflow_errors():
            return self._purge(read_arguments(self, PurgeOptions).retention_days)

    def _purge(self, days: int | None) -> dict[str, Any]:
        from airflow_provider_sms.hooks.ledger import configured_retention_days, open_ledger
        from airflow_provider_sms.ledger.purge import KEPT, kept_words, old_campaigns, purge

        days = configured_retention_days() if days is None else days
        if not days:
            self.log.info("Nothing is forgotten: set [sms] retention_days, or the operator's retention_days")
            return {"retention_days": 0}
        with closing(open_ledger(self.ledger_conn_id, create=False, stop=self.stop_signal)) as store:
            before = store.clock() - days * _DAY
            self.log.info("Forgetting what is older than %s in %s", iso(before), store.description)
            found = old_campaigns(store, before)
            purged = purge(store, found, before, should_stop=self.stop_signal.is_set)
        kept = [*found, *purged.in_use]
        for words in kept_words(kept):
            self.log.warning("%s", words)
        self.log.info("%s", purged)
        if self.stop_signal.is_set():
            raise StoppedError("Told to stop before everything was forgotten. The next run goes on from there")
        return {
            "retention_days": days,
            "before": iso(before),
            **{name: getattr(purged, name) for name in ("campaigns", "messages", "attempts", "balances")},
            "kept": {why: sum(old.keep == why for old in kept) for why in KEPT},
            "erased": purged.remains.is_gone,
        }

    def on_kill(self) -> None:
        """Stop after the current transaction; the next run goes on from there."""
        self.stop_signal.set()
