"""Recording the last outcomes of a send, also where the ledger fails for a while."""

from __future__ import annotations

import logging
import time
from itertools import chain, repeat
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import LedgerLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.model import Outcome
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

FIRST_WAITS = (0.2, 1.0, 3.0)
"""Seconds between the first attempts to record outcomes when the ledger fails."""
LAST_WAIT = 5.0
"""Seconds between all further attempts."""
STOPPED_SECONDS = 3.0
"""Seconds after which no attempt begins once the send was told to stop: Airflow kills it five seconds later."""
STOPPED_WAIT = 0.5
"""The longest wait between two of these attempts."""
_LOOK_SECONDS = 0.2
"""Seconds between two looks at the stop flag."""


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
    until, stopped = monotonic() + ledger.patience, False

    def last_begin() -> float:
        nonlocal until, stopped
        if stop.is_set() and not stopped:
            until, stopped = monotonic() + STOPPED_SECONDS, True
        return until

    for wait in chain(FIRST_WAITS, repeat(LAST_WAIT)):
        last_begin()
        try:
            ledger.finish(outcomes)
        except LedgerLostError as error:
            failed: Exception = error
            break
        except Exception as error:  # noqa: BLE001  # whatever it is: what was received must not be lost
            failed = error
            seconds = min(wait, STOPPED_WAIT) if stop.is_set() else wait
            if monotonic() + seconds > last_begin():
                break
            _wait(seconds, stop, sleep)
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


def _wait(seconds: float, stop: StopFlag, sleep: Callable[[float], None]) -> None:
    """Wait that many seconds, but no longer than until the send is told to stop."""
    if stop.is_set():
        sleep(seconds)
        return
    while seconds > 0 and not stop.is_set():
        sleep(min(seconds, _LOOK_SECONDS))
        seconds -= _LOOK_SECONDS
