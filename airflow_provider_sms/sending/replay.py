"""What a try sent before it waited, counted once more from the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import SmsError
from airflow_provider_sms.sending.claims import ACCEPTED
from airflow_provider_sms.service.responses import parse_send_response

if TYPE_CHECKING:
    from airflow_provider_sms.sending.ledger import CampaignLedger
    from airflow_provider_sms.sending.tally import Tally
    from airflow_provider_sms.service.responses import SendResponse


def replay(ledger: CampaignLedger, tally: Tally) -> None:
    """Count the requests that this try made before it waited, as if it had made them just now.

    :param tally: of the part since.
    :raises LedgerError: when the ledger cannot be read.
    """
    for request in ledger.parked_requests():
        if request.state == ACCEPTED:
            tally.replay(request.request_id, request.submitted, _answer(request.response))
        else:
            tally.replay_lost(request.request_id, request.submitted)


def _answer(body: str | None) -> SendResponse | None:
    if body is None:
        return None
    try:
        return parse_send_response(body.encode())
    except SmsError:
        return None
