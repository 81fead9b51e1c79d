"""A try enters its ledger: it finds the one of earlier tries, and leaves a trace before it claims anything."""

from __future__ import annotations

import os
import socket
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.operators.parking import gives_up_slot
from airflow_provider_sms.operators.trace import HighWaterMark, refuse_without_trace
from airflow_provider_sms.sending.claims import Claimant
from airflow_provider_sms.sending.earlier import register
from airflow_provider_sms.sending.high_water import high_water
from airflow_provider_sms.sending.ledger import CampaignLedger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.sending.contacts import FrequencyCap
    from airflow_provider_sms.sending.store import Store


@dataclass(frozen=True)
class Entry:
    """A try that is in its ledger.

    :param claimant_id: the try's, in the ledger.
    :param resumed: whether it has been there before, and has waited since.
    :param mark: notes outside the ledger how far it is.
    """

    store: Store
    who: Claimant
    claimant_id: int
    resumed: bool
    mark: HighWaterMark

    def campaign(self, name: str, kind: str, cap: FrequencyCap | None = None) -> CampaignLedger:
        """Give the claims of a campaign.

        :param kind: ``bulk`` or ``group``.
        :param cap: how often a person may be texted; None: any number of times.
        """
        return CampaignLedger(
            self.store, name, self.who, kind=kind, claimant_id=self.claimant_id, resumed=self.resumed, cap=cap
        )


@contextmanager
def entered(context: Context, ledger_conn_id: str | None, *, resumed: bool) -> Iterator[Entry]:
    """Open the ledger for a try.

    :param ledger_conn_id: an Airflow connection to PostgreSQL; None: see :func:`open_ledger`.
    :param resumed: whether the try goes on after an answer.
    :raises InputError: it cannot be the ledger, has no trace of the earlier tries, or has lost a part of it.
    :raises LedgerError: it cannot be opened.
    :raises StoppedError: another try has replaced this one.
    """
    who = claimant_of(context)
    with closing(open_ledger(ledger_conn_id)) as store:
        held = high_water(store, who)
        refuse_without_trace(context, store, who, held, resumed=resumed)
        claimant_id = register(store, who)
        mark = HighWaterMark(context, store, claimant_id, held)
        mark.leave()
        try:
            yield Entry(store, who, claimant_id, resumed, mark)
        except BaseException as signal:
            if gives_up_slot(signal):
                mark.park()
            raise
        finally:
            mark.beat(last=True)


def claimant_of(context: Context) -> Claimant:
    """Return who claims: this attempt, in this process."""
    ti = context["ti"]
    return Claimant(
        dag_id=ti.dag_id,
        task_id=ti.task_id,
        run_id=ti.run_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
        try_number=ti.try_number,
        host=socket.gethostname(),
        pid=os.getpid(),
    )
