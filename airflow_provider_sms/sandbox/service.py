"""The service's operations over HTTP, each with the fault that it meets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response

from airflow_provider_sms.sandbox.client_advice import advice_for
from airflow_provider_sms.sandbox.errors import FORMAT, RefusalError, bad_request
from airflow_provider_sms.sandbox.faults import Fault
from airflow_provider_sms.sandbox.records import RequestRecord
from airflow_provider_sms.sandbox.request_bodies import SendRequest, parse_bulk_body, parse_group_body
from airflow_provider_sms.sandbox.response_bodies import balance_body, send_body
from airflow_provider_sms.sandbox.responses import HangUp, JsonResponse, TruncatedResponse, wait_for_disconnect

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.faults import Target
    from airflow_provider_sms.sandbox.records import Operation, SendResult
    from airflow_provider_sms.sandbox.state import SandboxState

FAULT_TARGETS: dict[Operation, Target] = {
    "bulk": "send",
    "group": "send",
    "balance": "balance",
    "authentication": "authentication",
}
"""The ``on`` of the faults that each operation meets."""

JSON = "application/json"
NO_FAULT = Fault("none")
FOREIGN_PAGE = "<!doctype html><title>Welcome</title><p>This is not the service you are looking for.</p>"
GATEWAY_PAGE = "<!doctype html><title>{0}</title><h1>Error {0}</h1><hr>gateway"
GATEWAY_RETRY_AFTER = "5"  # seconds, as in the 503 of an unmodified Varnish
FAULT_CODES = {400: FORMAT, 401: "AuthenticationToken.Invalid", 403: "InsufficientCredits"}
WITHOUT_BODY = frozenset({204, 205, 304})  # RFC 9110 section 15


@dataclass(frozen=True, slots=True)
class Outcome:
    """The service's response to a request, before a fault alters it.

    :param status: HTTP status.
    :param body: body of the response.
    :param error: first error code of a refusal; None when the request was served.
    :param sent: result of a send request; None for a refusal and for every other operation.
    """

    status: int = 200
    body: dict[str, Any] | None = None
    error: str | None = None
    sent: SendResult | None = None


class Service:
    """The operations of one sandbox.

    :param state: the sandbox's memory.
    """

    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._config = state.config

    async def bulk(self, request: Request) -> Response:
        """Serve ``bulkmessages``."""
        return await self._serve(request, "bulk")

    async def group(self, request: Request) -> Response:
        """Serve ``groupmessages``."""
        return await self._serve(request, "group")

    async def balance(self, request: Request) -> Response:
        """Serve ``Balance``."""
        return await self._serve(request, "balance")

    async def authentication(self, request: Request) -> Response:
        """Serve ``Authentication``."""
        return await self._serve(request, "authentication")

    async def _serve(self, request: Request, operation: Operation) -> Response:
        number = self._state.next_request_number()
        target = FAULT_TARGETS[operation]
        fault, send_request = NO_FAULT, None
        try:
            send_request = await self._checked(request, operation)
            fault = self._state.faults.take(target)
            if fault.kind == "spend" and fault.when == "before":
                self._state.apply_spend(fault)
            outcome = await self._outcome(operation, send_request, fault, number)
        except RefusalError as refusal:
            outcome = Outcome(refusal.status, refusal.body(), refusal.errors[0][0])
        if fault.kind == "spend" and fault.when == "after":
            self._state.apply_spend(fault)
        response = _response(fault, outcome, request.url.path)
        has_response = not isinstance(response, HangUp)
        sent = outcome.sent
        self._state.record_request(
            RequestRecord(
                number=number,
                operation=operation,
                path=request.url.path,
                status=response.status_code if has_response else None,
                error=outcome.error,
                fault=fault.kind,
                advice=_advice_after(fault, accepted=bool(sent and sent.accepted)),
                submitted=len(send_request.messages) if send_request else 0,
                accepted=sent.accepted if sent else 0,
                event_id=sent.event_id if sent else None,
                send_options=send_request.send_options if send_request else None,
                at=datetime.now(timezone.utc),
            )
        )
        delay = (self._config.latency if target == "send" else 0) + (fault.seconds if fault.kind == "delay" else 0)
        if has_response and delay and await _disconnects_within(request, delay):
            return HangUp()
        return response

    async def _checked(self, request: Request, operation: Operation) -> SendRequest | None:
        """Perform every check that precedes the account, and return a send request's content."""
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
        return parse_bulk_body(body) if operation == "bulk" else parse_group_body(body, self._config.groups)

    async def _outcome(
        self, operation: Operation, send_request: SendRequest | None, fault: Fault, number: int
    ) -> Outcome:
        if fault.kind == "drop_before" or (fault.kind == "status" and not fault.accepted):
            return Outcome()
        if send_request is not None:
            # In a thread: while this request waits for the disk, others must be read and late responses sent.
            sent = await asyncio.to_thread(self._state.accept, send_request, number, fault.charge_after)
            return Outcome(body=send_body(sent, self._config), sent=sent)
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
    return TruncatedResponse(whole) if fault.kind == "truncated" else whole


def _advice_after(fault: Fault, *, accepted: bool) -> str | None:
    """Return the advice for a fault. Whether messages were accepted, and so charged, also depends on the balance."""
    return None if fault.kind == "none" else advice_for(replace(fault, accepted=accepted, charge_after=0.0))


def status_response(fault: Fault, path: str) -> Response:
    """Return the response of a ``status`` fault.

    :param fault: the fault.
    :param path: path of the request's URL.
    """
    headers = {"Retry-After": fault.retry_after} if fault.retry_after is not None else {}
    if 300 <= fault.status < 400:  # noqa: PLR2004 - RFC 9110 section 15.4
        headers["Location"] = path  # a client that follows it sends twice, which the witness shows
    if fault.status in WITHOUT_BODY:
        return Response(status_code=fault.status, headers=headers)
    if fault.body is not None:
        return Response(fault.body, fault.status, headers, media_type="text/plain")
    if fault.by == "gateway":
        if fault.status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers.setdefault("Retry-After", GATEWAY_RETRY_AFTER)
        name = f"{fault.status} {_phrase(fault.status)}".strip()
        return Response(GATEWAY_PAGE.format(name), fault.status, headers, media_type="text/html")
    error = (FAULT_CODES.get(fault.status, "Fault"), "a fault that the sandbox was asked for")
    return JsonResponse(RefusalError(fault.status, error).body(), fault.status, headers)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _media_types(header: str) -> list[str]:
    return [item.partition(";")[0].strip().lower() for item in header.split(",")]


async def _disconnects_within(request: Request, seconds: float) -> bool:
    """Return whether the client disconnects within a time. A stopping sandbox thus waits for no late response."""
    try:
        await asyncio.wait_for(wait_for_disconnect(request.receive), seconds)
    except asyncio.TimeoutError:
        return False
    return True
