"""The control paths under ``/_sandbox``, which the real service does not have: faults, account, state and reset.

They take no token. A browser would therefore submit any website's form to them, so a change that a browser requests
for another site is refused. The comparison of ``Origin`` with ``Host`` relies on :mod:`.trusted_hosts`, since a website
that points its own name here has the same name in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson
from fastapi import APIRouter, Depends, Query, Request, Response

from airflow_provider_sms.sandbox.errors import FORMAT, TYPE, RefusalError, bad_request
from airflow_provider_sms.sandbox.faults import parse_fault
from airflow_provider_sms.sandbox.response_bodies import json_number
from airflow_provider_sms.sandbox.responses import JsonResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sms.sandbox.state import SandboxState

MAX_MESSAGES = 10_000
"""Messages in one response of ``GET messages``, at most, so that a large memory is never copied at once."""

READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITE = frozenset({"same-origin", "none"})
"""Values of ``Sec-Fetch-Site`` for the sandbox's own page, and for an address that a person typed."""


async def refuse_other_sites(request: Request) -> None:
    """Raise when a browser asks for a change on behalf of another site's page.

    Browsers name the origin of a request (Fetch Metadata, and RFC 6454 section 7). Other clients name none, and pass.

    :param request: the request.
    :raises RefusalError: 403.
    """
    if request.method in READ_METHODS:
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    is_other_site = site is not None and site not in OWN_SITE
    is_other_origin = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if is_other_site or is_other_origin:
        raise RefusalError(403, ("OtherSite", "in a browser, only the sandbox's own page may change the sandbox"))


class Control:
    """The control paths of one sandbox. Every path that changes the sandbox responds with the new state.

    :param state: the sandbox's memory.
    """

    def __init__(self, state: SandboxState) -> None:
        self._state = state

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(prefix="/_sandbox", dependencies=[Depends(refuse_other_sites)])
        router.add_api_route("/state", self.show, methods=["GET"])
        router.add_api_route("/messages", self.messages, methods=["GET"])
        router.add_api_route("/faults", self.add_faults, methods=["POST"])
        router.add_api_route("/faults", self.clear_faults, methods=["DELETE"])
        router.add_api_route("/balance", self.set_balance, methods=["PUT"])
        router.add_api_route("/spend", self.spend, methods=["POST"])
        router.add_api_route("/top-up", self.top_up, methods=["POST"])
        router.add_api_route("/post-paid", self.set_post_paid, methods=["PUT"])
        router.add_api_route("/reset", self.reset, methods=["POST"])
        return router

    async def show(self) -> Response:
        """Respond with balance, counts and waiting faults."""
        snapshot = self._state.snapshot()
        return JsonResponse(
            {
                "balance": json_number(snapshot.balance),
                "post_paid": snapshot.post_paid,
                "requests": snapshot.requests,
                "accepted_messages": snapshot.messages,
                "faults": self._state.faults.pending(),
            }
        )

    async def messages(self, limit: int = Query(100, ge=0, le=MAX_MESSAGES), offset: int = Query(0, ge=0)) -> Response:
        """Respond with accepted messages, oldest first, each as in the witness.

        :param limit: maximum number of messages, up to 10,000; default 100.
        :param offset: number of messages to skip; default 0.
        """
        total, accepted = self._state.accepted_page(limit, offset)
        return JsonResponse({"total": total, "messages": [message.entry() for message in accepted]})

    async def add_faults(self, request: Request) -> Response:
        """Append the faults of a JSON list to the waiting ones."""
        faults = await _json(request)
        if not isinstance(faults, list):
            raise bad_request(TYPE, "the body must be a list of faults")
        try:
            parsed = [parse_fault(fault) for fault in faults]
        except ValueError as error:
            raise bad_request(FORMAT, str(error)) from None
        self._state.faults.add(parsed)
        return await self.show()

    async def clear_faults(self) -> Response:
        """Remove all waiting faults."""
        self._state.faults.clear()
        return await self.show()

    async def set_balance(self, request: Request) -> Response:
        """Set the pre-paid balance: ``{"balance": 500}``."""
        return await self._change_balance(request, "balance", self._state.set_balance)

    async def spend(self, request: Request) -> Response:
        """Spend from the pre-paid account as somebody else would: ``{"amount": 42.5}``."""
        return await self._change_balance(request, "amount", self._state.spend)

    async def top_up(self, request: Request) -> Response:
        """Add to the pre-paid account: ``{"amount": 100}``."""
        return await self._change_balance(request, "amount", self._state.top_up)

    async def set_post_paid(self, request: Request) -> Response:
        """Turn deduction off or on: ``{"post_paid": true}``."""
        post_paid = _only(await _json(request), "post_paid")
        if not isinstance(post_paid, bool):
            raise bad_request(TYPE, "post_paid must be true or false")
        self._state.set_post_paid(post_paid)
        return await self.show()

    async def reset(self) -> Response:
        """Remove messages, requests and faults, and restore the account."""
        self._state.reset()
        return await self.show()

    async def _change_balance(self, request: Request, key: str, change: Callable[[float], None]) -> Response:
        amount = _only(await _json(request), key)
        if type(amount) not in (int, float):
            raise bad_request(TYPE, f"{key} must be a number")
        try:
            change(amount)
        except ValueError as error:
            raise bad_request(FORMAT, str(error)) from None
        return await self.show()


async def _json(request: Request) -> Any:
    try:
        return orjson.loads(await request.body())
    except ValueError:
        raise bad_request(FORMAT, "the body is not JSON") from None


def _only(body: Any, key: str) -> Any:
    if not isinstance(body, dict) or body.keys() != {key}:
        raise bad_request(FORMAT, f"the body must be an object whose only key is {key}")
    return body[key]
