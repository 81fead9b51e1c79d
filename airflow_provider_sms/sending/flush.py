"""Recording the last outcomes of a send, also where the ledger fails for a while."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import LedgerError, LedgerLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.model import Outcome

log = logging.getLogger(__name__)

FLUSH_WAITS = (0.2, 1.0, 3.0, 5.0, 10.0, 10.0, 10.0)
"""Seconds between attempts to record outcomes when the ledger fails."""
FLUSH_SECONDS = 40.0
"""Seconds after which no attempt to record begins: one of them takes seconds where the ledger is silent."""


def flush(
    ledger: CampaignLedger,
    outcomes: Sequence[Outcome],
    sleep: Callable[[float], None],
    monotonic: Callable[[], float] = time.monotonic,
) -> LedgerError | None:
    """Record outcomes, and give back claims whose commit raised; only while no POST is in flight.

    :param sleep: waits for that many seconds.
    :param monotonic: seconds from any start.
    :returns: the last error; None when everything is recorded.
    """
    failed: LedgerError | None = None
    give_up = monotonic() + FLUSH_SECONDS
    for wait in (*FLUSH_WAITS, None):
        try:
            ledger.finish(outcomes)
        except LedgerLostError as error:
            failed = error
            break
        except LedgerError as error:
            failed = error
            if wait is None or monotonic() + wait > give_up:
                break
            sleep(wait)
        else:
            return None
    for outcome in outcomes:
        log.error(
            "Not recorded in the ledger: request %d is %s, event id %s",
            outcome.request_id,
            outcome.state,
            outcome.event_id,
        )
    return failed
