"""The paths that the page reads: its files, the stream, and pages of rows. Nothing here changes anything."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter, Query, Request, Response

from airflow_provider_sms.sandbox import page
from airflow_provider_sms.sandbox.advice import EFFECTS, advice
from airflow_provider_sms.sandbox.events import EventStream
from airflow_provider_sms.sandbox.faults import parse_fault
from airflow_provider_sms.sandbox.inbox import Inbox
from airflow_provider_sms.sandbox.refusals import FORMAT, RefusalError, bad_request
from airflow_provider_sms.sandbox.responses import JsonResponse

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.state import SandboxState

MOST_ROWS = 100
LONGEST_QUERY = 200


class Views:
    """The reading paths of one sandbox's page. Those with rows answer with a page of :class:`Inbox`.

    :param state: its memory.
    """

    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._inbox = Inbox(state)

    def router(self) -> APIRouter:
        """Give the routes."""
        router = APIRouter()
        router.add_api_route("/", self.index, methods=["GET"])
        router.add_api_route("/_sandbox/page/{name}", self.asset, methods=["GET"])
        router.add_api_route("/_sandbox/events", self.events, methods=["GET"])
        router.add_api_route("/_sandbox/requests", self.requests, methods=["GET"])
        router.add_api_route("/_sandbox/requests/{number}", self.request_messages, methods=["GET"])
        router.add_api_route("/_sandbox/numbers", self.numbers, methods=["GET"])
        router.add_api_route("/_sandbox/numbers/{destination}", self.number_messages, methods=["GET"])
        router.add_api_route("/_sandbox/search", self.search, methods=["GET"])
        router.add_api_route("/_sandbox/advice", self.advise, methods=["GET"])
        return router

    async def index(self) -> Response:
        """Give the page."""
        return page.answer(page.INDEX)

    async def asset(self, name: str) -> Response:
        """Give a file of the page.

        :param name: its name.
        """
        if name not in page.assets():
            raise RefusalError(404, ("EntityNotFound", "the page has no such file"))
        return page.answer(name)

    async def events(self) -> Response:
        """Give the stream of what happens."""
        return EventStream(self._state)

    async def requests(
        self, before: int | None = Query(None, ge=0), limit: int = Query(50, ge=1, le=MOST_ROWS)
    ) -> Response:
        """Give requests, newest first."""
        # In a thread, as are the others: what arrived since the last look may be much.
        return JsonResponse(await asyncio.to_thread(self._inbox.requests, before, limit))

    async def request_messages(
        self, number: int, offset: int = Query(0, ge=0), limit: int = Query(MOST_ROWS, ge=1, le=MOST_ROWS)
    ) -> Response:
        """Give the messages of a request, in its order."""
        return JsonResponse(await asyncio.to_thread(self._inbox.messages_of, number, offset, limit))

    async def numbers(
        self, before: int | None = Query(None, ge=0), limit: int = Query(50, ge=1, le=MOST_ROWS)
    ) -> Response:
        """Give the numbers that received something, that with the latest message first."""
        return JsonResponse(await asyncio.to_thread(self._inbox.numbers, before, limit))

    async def number_messages(
        self, destination: str, before: int | None = Query(None, ge=0), limit: int = Query(50, ge=1, le=MOST_ROWS)
    ) -> Response:
        """Give the messages to a number, newest first."""
        return JsonResponse(await asyncio.to_thread(self._inbox.messages_to, destination, before, limit))

    async def search(
        self,
        q: str = Query(min_length=1, max_length=LONGEST_QUERY),
        before: int | None = Query(None, ge=0),
        limit: int = Query(50, ge=1, le=MOST_ROWS),
    ) -> Response:
        """Give messages by number, text or event id, newest first."""
        return JsonResponse(await asyncio.to_thread(self._inbox.search, q, before, limit))

    async def advise(self, request: Request) -> Response:
        """Tell what a fault, given by its fields in the query, does, and what a correct client must do then."""
        given = request.query_params
        fields = {name: given[name] for name in ("kind", "on", "by") if name in given}
        try:
            status = {"status": int(given["status"])} if "status" in given else {}
            fault = parse_fault({**fields, **status, "accepted": given.get("accepted") == "true"})
        except ValueError as error:
            raise bad_request(FORMAT, str(error)) from None
        return JsonResponse({"effect": EFFECTS[fault.kind], "advice": advice(fault)})
