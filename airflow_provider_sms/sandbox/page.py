"""The page for people: its files, its event stream, and the rows that it reads. Nothing here changes the sandbox."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from fastapi import APIRouter, Query, Request, Response

from airflow_provider_sms.sandbox.client_advice import EFFECTS, advice_for
from airflow_provider_sms.sandbox.errors import FORMAT, RefusalError, bad_request
from airflow_provider_sms.sandbox.event_stream import EventStream
from airflow_provider_sms.sandbox.faults import parse_fault
from airflow_provider_sms.sandbox.inbox import Inbox
from airflow_provider_sms.sandbox.responses import JsonResponse

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.state import SandboxState

INDEX = "index.html"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every file. Were a text ever inserted as markup, the browser would still neither run nor load it."""

MAX_ROWS = 100
"""Rows in one response, at most."""
MAX_QUERY_CHARACTERS = 200
"""Length of a search, as in the page's search field."""

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def assets() -> dict[str, bytes]:
    """Return the page's files by name."""
    folder = files("airflow_provider_sms.sandbox") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES}


class Page:
    """The page's paths in one sandbox. Those that return rows respond with a page of :class:`Inbox`.

    :param state: the sandbox's memory.
    """

    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._inbox = Inbox(state)

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        router.add_api_route("/", self.index, methods=["GET"])
        router.add_api_route("/_sandbox/page/{name}", self.asset, methods=["GET"])
        router.add_api_route("/_sandbox/events", self.events, methods=["GET"])
        router.add_api_route("/_sandbox/requests", self.requests, methods=["GET"])
        router.add_api_route("/_sandbox/requests/{number}", self.request_messages, methods=["GET"])
        router.add_api_route("/_sandbox/numbers", self.numbers, methods=["GET"])
        router.add_api_route("/_sandbox/numbers/{destination}", self.number_messages, methods=["GET"])
        router.add_api_route("/_sandbox/search", self.search, methods=["GET"])
        router.add_api_route("/_sandbox/advice", self.advice, methods=["GET"])
        return router

    async def index(self) -> Response:
        """Respond with the page."""
        return await self.asset(INDEX)

    async def asset(self, name: str) -> Response:
        """Respond with one of the page's files.

        :param name: name of the file.
        """
        if name not in assets():
            raise RefusalError(404, ("EntityNotFound", "the page has no such file"))
        return Response(assets()[name], headers=HEADERS, media_type=_TYPES[name.rpartition(".")[2]])

    async def events(self) -> Response:
        """Respond with the stream of state changes."""
        return EventStream(self._state)

    async def requests(
        self, before: int | None = Query(None, ge=0), limit: int = Query(50, ge=1, le=MAX_ROWS)
    ) -> Response:
        """Respond with requests, newest first."""
        # In a thread, like all reads of the inbox: indexing what arrived since the last one may take a while.
        return JsonResponse(await asyncio.to_thread(self._inbox.requests, before, limit))

    async def request_messages(
        self, number: int, offset: int = Query(0, ge=0), limit: int = Query(MAX_ROWS, ge=1, le=MAX_ROWS)
    ) -> Response:
        """Respond with the messages of one request, in request order."""
        return JsonResponse(await asyncio.to_thread(self._inbox.messages_of, number, offset, limit))

    async def numbers(
        self, before: int | None = Query(None, ge=0), limit: int = Query(50, ge=1, le=MAX_ROWS)
    ) -> Response:
        """Respond with the numbers that received messages, the most recent first."""
        return JsonResponse(await asyncio.to_thread(self._inbox.numbers, before, limit))

    async def number_messages(
        self, destination: str, before: int | None = Query(None, ge=0), limit: int = Query(50, ge=1, le=MAX_ROWS)
    ) -> Response:
        """Respond with the messages to one number, newest first."""
        return JsonResponse(await asyncio.to_thread(self._inbox.messages_to, destination, before, limit))

    async def search(
        self,
        q: str = Query(min_length=1, max_length=MAX_QUERY_CHARACTERS),
        before: int | None = Query(None, ge=0),
        limit: int = Query(50, ge=1, le=MAX_ROWS),
    ) -> Response:
        """Respond with messages that match a number, text or event id, newest first."""
        return JsonResponse(await asyncio.to_thread(self._inbox.search, q, before, limit))

    async def advice(self, request: Request) -> Response:
        """Respond with the effect of the fault in the query, and with what a correct client must do about it."""
        query = request.query_params
        fields = {name: query[name] for name in ("kind", "on", "by") if name in query}
        try:
            status = {"status": int(query["status"])} if "status" in query else {}
            fault = parse_fault({**fields, **status, "accepted": query.get("accepted") == "true"})
        except ValueError as error:
            raise bad_request(FORMAT, str(error)) from None
        return JsonResponse({"effect": EFFECTS[fault.kind], "advice": advice_for(fault)})
