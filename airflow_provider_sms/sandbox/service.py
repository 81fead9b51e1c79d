"""The service's operations over HTTP, and everything that can be made to go wrong with them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response

from airflow_provider_sms.sandbox import records
from airflow_provider_sms.sandbox.advice import advice
from airflow_provider_sms.sandbox.answers import balance_body, send_body
from airflow_provider_sms.sandbox.faults import Fault
from airflow_provider_sms.sandbox.refusals import FORMAT, RefusalError, bad_request
from airflow_provider_sms.sandbox.responses import HangUp, JsonResponse, Truncated, gone
from airflow_provider_sms.sandbox.submissions import Submission, bulk_submission, group_submission

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.state import SandboxState

JSON = "application/json"
NO_FAULT = Fault("none")
FOREIGN_PAGE = "<!doctype html><title>Welcome</title><p>This is not the service you are looking for.</p>"
GATEWAY_PAGE = "<!doctype html><title>{0}</title><h1>Error {0}</h1><hr>gateway"
GATEWAY_RETRY_AFTER = "5"  # of the 503 that an unmodified Varnish writes
FAULT_CODES = {400: FORMAT, 401: "AuthenticationToken.Invalid", 403: "InsufficientCredits"}
BODILESS = frozenset({204, 205, 304})  # RFC 9110 section 15: no content follows these


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the service made of a request.

    :param status: HTTP status.
    :param body: body of the answer.
    :param error: first error code of a refusal; None when it was served.
    :param receipt: what its send response reports; None when it has none.
    """

    status: int = 200
    body: dict[str, Any] | None = None
    error: str | None = None
    receipt: records.Receipt | None = None


class Service:
    """The operations of one sandbox.

    :param state: its memory.
    """

    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._config = state.config

    async def bulk(self, request: Request) -> Response:
        """Answer ``bulkmessages``."""
        return await self._serve(request, "bulk")

    async def group(self, request: Request) -> Response:
        """Answer ``groupmessages``."""
        return await self._serve(request, "group")

    async def balance(self, request: Request) -> Response:
        """Answer ``Balance``."""
        return await self._serve(request, "balance")

    async def authentication(self, request: Request) -> Response:
        """Answer ``Authentication``."""
        return await self._serve(request, "authentication")

    async def _serve(self, request: Request, operation: records.Operation) -> Response:
        number = self._state.next_number()
        target = records.TARGETS[operation]
        fault, submission = NO_FAULT, None
        try:
            submission = await self._checked(request, operation)
            fault = self._state.faults.take(target)
            outcome = await self._outcome(operation, submission, fault, number)
        except RefusalError as refusal:
            outcome = Outcome(refusal.status, refusal.body(), refusal.errors[0][0])
        response = _response(fault, outcome, request.url.path)
        answered = not isinstance(response, HangUp)
        receipt = outcome.receipt
        self._state.note(
            records.Request(
                number=number,
                operation=operation,
                path=request.url.path,
                status=response.status_code if answered else None,
                error=outcome.error,
                fault=fault.kind,
                advice=_advice_after(fault, accepted=bool(receipt and receipt.accepted)),
                submitted=len(submission.messages) if submission else 0,
                accepted=receipt.accepted if receipt else 0,
                event_id=receipt.event_id if receipt else None,
                send_options=submission.send_options if submission else None,
                at=datetime.now(timezone.utc),
            )
        )
        late = (self._config.latency if target == "send" else 0) + (fault.seconds if fault.kind == "delay" else 0)
        if answered and late and await _gone_within(request, late):
            return HangUp()
        return response

    async def _checked(self, request: Request, operation: records.Operation) -> Submission | None:
        """Check everything that the service checks before it looks at the account."""
        authorization = request.headers.get("authorization")
        if operation == "authentication":
            self._state.tokens.check_client(authorization)
            return None
        self._state.tokens.check(authorization)
        if JSON not in _media_types(request.headers.get("accept", "")):
            raise bad_request(FORMAT, f"the header Accept: {JSON} is missing")
        if operation == "balance":
            return None
        if _media_types(request.headers.get("content-type", "")) != [JSON]:
            raise bad_request(FORMAT, f"the header Content-Type: {JSON} is missing")
        body = await request.body()
        return bulk_submission(body) if operation == "bulk" else group_submission(body, self._config.groups)

    async def _outcome(
        self, operation: records.Operation, submission: Submission | None, fault: Fault, number: int
    ) -> Outcome:
        if fault.kind == "drop_before" or (fault.kind == "status" and not fault.accepted):
            return Outcome()
        if submission is not None:
            # In a thread: while one request waits for the disk, others must be read and late answers sent.
            receipt = await asyncio.to_thread(self._state.accept, submission, number)
            return Outcome(body=send_body(receipt, self._config), receipt=receipt)
        if operation == "balance":
            return Outcome(body=balance_body(self._state.balance, self._config))
        return Outcome(body=self._state.tokens.issue())


def _response(fault: Fault, outcome: Outcome, path: str) -> Response:
    if fault.kind in ("drop_before", "drop_after"):
        return HangUp(reset=fault.reset)
    if fault.kind == "status":
        return status_response(fault, path)
    if fault.kind == "foreign":
        return Response(FOREIGN_PAGE, media_type="text/html")
    whole = JsonResponse(outcome.body, outcome.status)
    return Truncated(whole) if fault.kind == "truncated" else whole


def _advice_after(fault: Fault, *, accepted: bool) -> str | None:
    """Return what a client must do after a fault that accepted a request, or did not: no fault gives credit."""
    return None if fault.kind == "none" else advice(replace(fault, accepted=accepted))


def status_response(fault: Fault, path: str) -> Response:
    """Return the response of a ``status`` fault.

    :param fault: the fault.
    :param path: of the request.
    """
    headers = {"Retry-After": fault.retry_after} if fault.retry_after is not None else {}
    if 300 <= fault.status < 400:  # noqa: PLR2004 - RFC 9110 section 15.4
        headers["Location"] = path  # a client that follows it sends again, which the witness shows
    if fault.status in BODILESS:
        return Response(status_code=fault.status, headers=headers)
    if fault.body is not None:
        return Response(fault.body, fault.status, headers, media_type="text/plain")
    if fault.by == "gateway":
        if fault.status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers.setdefault("Retry-After", GATEWAY_RETRY_AFTER)
        name = f"{fault.status} {_phrase(fault.status)}".strip()
        return Response(GATEWAY_PAGE.format(name), fault.status, headers, media_type="text/html")
    error = (FAULT_CODES.get(fault.status, "Fault"), "a fault of the sandbox, as asked for")
    return JsonResponse(RefusalError(fault.status, error).body(), fault.status, headers)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _media_types(header: str) -> list[str]:
    return [item.partition(";")[0].strip().lower() for item in header.split(",")]


async def _gone_within(request: Request, seconds: float) -> bool:
    """Wait, but no longer than the connection lasts: stopping the sandbox must not wait for late answers."""
    try:
        await asyncio.wait_for(gone(request.receive), seconds)
    except asyncio.TimeoutError:
        return False
    return True
