"""Recording the last outcomes of a send, also where the ledger fails for a while."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import LedgerLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.model import Outcome
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

WAIT_SECONDS = 0.5
"""Seconds between two attempts to record outcomes when the ledger fails."""
STOPPED_SECONDS = 3.0
"""Seconds after which no attempt begins once the send was told to stop: Airflow kills it five seconds later."""


def flush(
    ledger: CampaignLedger,
    outcomes: Sequence[Outcome],
    stop: StopFlag,
    sleep: Callable[[float], None],
    monotonic: Callable[[], float] = time.monotonic,
) -> Exception | None:
    """Record outcomes, and give back claims whose commit raised; only while no POST is in flight.

    No attempt begins after the ledger's ``patience``; the log then names each request, for ``airflow-sms resolve``.

    :param stop: whether the send was told to stop.
    :param sleep: waits for that many seconds.
    :param monotonic: seconds from any start.
    :returns: the last error; None when everything is recorded.
    """
    until = monotonic() + ledger.patience
    stopped = False
    while True:
        if stop.is_set() and not stopped:
            until, stopped = monotonic() + STOPPED_SECONDS, True
        try:
            ledger.finish(outcomes)
        except LedgerLostError as error:
            failed: Exception = error
            break
        except Exception as error:  # noqa: BLE001  # whatever it is: what was received must not be lost
            failed = error
        else:
            return None
        if monotonic() + WAIT_SECONDS > until:
            break
        sleep(WAIT_SECONDS)
    for outcome in outcomes:
        log.error(
            "Not recorded in the ledger: request %d is %s, event id %s",
            outcome.request_id,
            outcome.state,
            outcome.event_id,
        )
    return failed
