"""Recording the last outcomes of a send, also where the ledger fails for a while."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.model import Outcome

log = logging.getLogger(__name__)

STOPPED_SECONDS = 3.0
"""Seconds after which no attempt begins once the send was told to stop: Airflow kills it five seconds later."""


def flush(ledger: CampaignLedger, outcomes: Sequence[Outcome]) -> Exception | None:
    """Record outcomes, and give back claims whose commit raised; only while no POST is in flight.

    It is tried as long as the ledger's patience lasts; the log then names each request, for ``airflow-sms resolve``.

    :returns: the last error; None when everything is recorded.
    """
    try:
        # Whatever the error is: what was received must not be lost.
        ledger.patience.again(lambda: ledger.finish(outcomes), Exception, stopped_seconds=STOPPED_SECONDS)
    except Exception as error:  # noqa: BLE001  # likewise
        failed = error
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
