"""The last outcomes of a try, recorded within a bound; else the log holds them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import LedgerError, LedgerLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.sending.claims import Outcome
    from airflow_provider_sms.sending.ledger import CampaignLedger

log = logging.getLogger(__name__)

FLUSH_WAITS = (0.2, 1.0, 3.0, 10.0, 30.0)
"""Seconds between attempts to record outcomes when the ledger fails."""


def flush(ledger: CampaignLedger, outcomes: Sequence[Outcome], sleep: Callable[[float], None]) -> LedgerError | None:
    """Record outcomes, and give back claims whose commit raised.

    Only for when no post is under way.

    :param sleep: waits for that many seconds.
    :returns: the last error; None when all is recorded.
    """
    failed: LedgerError | None = None
    for wait in (*FLUSH_WAITS, None):
        try:
            ledger.finish(outcomes)
        except LedgerLostError as error:
            failed = error
            break
        except LedgerError as error:
            failed = error
            if wait is not None:
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
