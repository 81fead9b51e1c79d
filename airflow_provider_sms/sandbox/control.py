"""The paths under ``/_sandbox`` that only a sandbox has, without a token: faults, balance, a look inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from fastapi import APIRouter, Depends, Query, Request, Response

from airflow_provider_sms.sandbox.answers import number
from airflow_provider_sms.sandbox.faults import parse_fault
from airflow_provider_sms.sandbox.refusals import FORMAT, TYPE, bad_request
from airflow_provider_sms.sandbox.responses import JsonResponse
from airflow_provider_sms.sandbox.sites import refuse_other_sites

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.state import SandboxState

MAX_PAGE = 10_000


class Control:
    """The control paths of one sandbox. Each that changes something answers with the state after it.

    :param state: its memory.
    """

    def __init__(self, state: SandboxState) -> None:
        self._state = state

    def router(self) -> APIRouter:
        """Give the routes."""
        router = APIRouter(prefix="/_sandbox", dependencies=[Depends(refuse_other_sites)])
        router.add_api_route("/state", self.show, methods=["GET"])
        router.add_api_route("/messages", self.messages, methods=["GET"])
        router.add_api_route("/faults", self.add_faults, methods=["POST"])
        router.add_api_route("/faults", self.clear_faults, methods=["DELETE"])
        router.add_api_route("/balance", self.set_balance, methods=["PUT"])
        router.add_api_route("/post-paid", self.set_post_paid, methods=["PUT"])
        router.add_api_route("/reset", self.reset, methods=["POST"])
        return router

    async def show(self) -> Response:
        """Give balance, counts and the faults that wait."""
        mark = self._state.mark()
        return JsonResponse(
            {
                "balance": number(mark.balance),
                "post_paid": mark.post_paid,
                "requests": mark.requests,
                "accepted_messages": mark.messages,
                "faults": self._state.faults.pending(),
            }
        )

    async def messages(self, limit: int = Query(100, ge=0, le=MAX_PAGE), offset: int = Query(0, ge=0)) -> Response:
        """Give accepted messages, oldest first, each as its line of the witness.

        :param limit: messages to give, at most 10,000; default 100.
        :param offset: messages to leave out first; default 0.
        """
        total, accepted = self._state.page(limit, offset)
        return JsonResponse({"total": total, "messages": [message.entry() for message in accepted]})

    async def add_faults(self, request: Request) -> Response:
        """Put faults, a JSON list, behind those that wait."""
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
        """Forget every fault that waits."""
        self._state.faults.clear()
        return await self.show()

    async def set_balance(self, request: Request) -> Response:
        """Change the pre-paid credit: ``{"balance": 500}``."""
        balance = _only(await _json(request), "balance")
        if type(balance) not in (int, float):
            raise bad_request(TYPE, "balance must be a number")
        try:
            self._state.set_balance(balance)
        except ValueError as error:
            raise bad_request(FORMAT, str(error)) from None
        return await self.show()

    async def set_post_paid(self, request: Request) -> Response:
        """Turn deduction off or on: ``{"post_paid": true}``."""
        post_paid = _only(await _json(request), "post_paid")
        if not isinstance(post_paid, bool):
            raise bad_request(TYPE, "post_paid must be true or false")
        self._state.set_post_paid(post_paid)
        return await self.show()

    async def reset(self) -> Response:
        """Forget requests, messages and faults, and restore the balance."""
        self._state.reset()
        return await self.show()


async def _json(request: Request) -> Any:
    try:
        return orjson.loads(await request.body())
    except ValueError:
        raise bad_request(FORMAT, "the body is not JSON") from None


def _only(body: Any, key: str) -> Any:
    if not isinstance(body, dict) or body.keys() != {key}:
        raise bad_request(FORMAT, f"the body must be an object with the key {key} alone")
    return body[key]
