"""What an answer or an error means to the ledger: the table of failures as two functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeGuard

from airflow_provider_sms.exceptions import ServiceError, SmsError
from airflow_provider_sms.sending.claims import ACCEPTED, NOT_SENT, Outcome
from airflow_provider_sms.sending.tally import reported

if TYPE_CHECKING:
    from airflow_provider_sms.sending.claims import Chunk
    from airflow_provider_sms.service.responses import SendResponse

HTTP_OK = 200


def took_none(response: SendResponse) -> bool:
    """Return whether the service took none of the messages, and charged nothing for them."""
    return not (response.messages or response.parts or response.cost)


def answered(request_id: int, response: SendResponse, chunk: Chunk) -> Outcome:
    """Return the outcome of an answer of the contract: accepted, wholly or in part; or not sent, where none were taken.

    :param chunk: what was posted.
    """
    none_taken = took_none(response)
    return Outcome(
        request_id=request_id,
        state=NOT_SENT if none_taken else ACCEPTED,
        http_status=HTTP_OK,
        event_id=response.event_id,
        messages=response.messages,
        parts=response.parts,
        cost=str(response.cost),
        # Not orjson, which refuses half an emoji and integers beyond 64 bits: a record must not fail.
        response=json.dumps(response.raw),
        reason=f"the service took none of the messages: {reported(response.error_report)}" if none_taken else None,
        chunk=chunk,
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
