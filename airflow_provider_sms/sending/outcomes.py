"""What an answer or an error means to the ledger: the table of failures as two functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeGuard

from airflow_provider_sms.exceptions import ServiceError, SmsError
from airflow_provider_sms.sending.claims import ACCEPTED, Outcome

if TYPE_CHECKING:
    from airflow_provider_sms.service.responses import SendResponse

HTTP_OK = 200


def accepted(request_id: int, response: SendResponse) -> Outcome:
    """Give the outcome of an answer as the contract says: the service took the request, wholly or in part."""
    return Outcome(
        request_id=request_id,
        state=ACCEPTED,
        http_status=HTTP_OK,
        event_id=response.event_id,
        messages=response.messages,
        parts=response.parts,
        cost=str(response.cost),
        # Not orjson, which refuses half an emoji and integers beyond 64 bits: a record must not fail.
        response=json.dumps(response.raw),
    )


def surely_not_sent(error: BaseException) -> TypeGuard[SmsError]:
    """Say whether a post that raised this was certainly not processed; what is not known to be ours may have been."""
    return isinstance(error, SmsError) and not error.may_have_been_sent


def failed(request_id: int, state: str, error: BaseException | None) -> Outcome:
    """Give the outcome of a request that ended without an answer of the contract.

    :param state: ``unknown`` or ``not_sent``.
    :param error: why; None where sending was stopped before it was posted.
    """
    return Outcome(
        request_id=request_id,
        state=state,
        http_status=error.status if isinstance(error, ServiceError) else None,
        # The words of an error that is not ours may quote anything: its kind has to do.
        reason=None if error is None else str(error) if isinstance(error, SmsError) else type(error).__name__,
    )
