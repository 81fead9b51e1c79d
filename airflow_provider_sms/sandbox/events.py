"""The stream that keeps an open page up to date: server-sent events (WHATWG HTML, section 9.2)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import orjson
from fastapi import Response

from airflow_provider_sms.sandbox.answers import number
from airflow_provider_sms.sandbox.responses import gone
from airflow_provider_sms.sandbox.rows import fault_row

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from airflow_provider_sms.sandbox.state import Mark, SandboxState

INTERVAL_SECONDS = 0.25
"""Time between two looks: what happens within it is told as one event, be it a thousand messages."""
FAULTS_TOLD = 50
RETRY_MILLISECONDS = 1000


class EventStream(Response):
    """An answer that lasts as long as the page: the present state at once, then again whenever it is another.

    An event holds counts, the account and the faults that come next, never a message: the page then asks for the rows
    that it shows. So nothing is lost when a stream breaks, and the next one needs to know nothing of it.

    :param state: the sandbox's memory.
    """

    media_type = "text/event-stream"

    def __init__(self, state: SandboxState) -> None:
        super().__init__(headers={"Cache-Control": "no-store"})
        del self.headers["content-length"]  # the framework's, of an empty body
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send events until the page is gone or the server ends the connection."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        left = asyncio.ensure_future(gone(receive))
        told: Mark | None = None
        try:
            while not left.done():
                mark = self._state.mark()
                if mark != told:
                    await send({"type": "http.response.body", "body": self._event(mark), "more_body": True})
                    told = mark
                # A look costs a few numbers. To be woken by each message would cost the sender something instead.
                await asyncio.wait({left}, timeout=INTERVAL_SECONDS)
        finally:
            left.cancel()

    def _event(self, mark: Mark) -> bytes:
        waiting, faults = self._state.faults.first(FAULTS_TOLD)
        data = {
            "epoch": mark.epoch,
            "requests": mark.requests,
            "messages": mark.messages,
            "balance": number(mark.balance),
            "post_paid": mark.post_paid,
            "waiting_faults": waiting,
            "faults": [fault_row(fault, times) for fault, times in faults],
        }
        return b"retry: %d\nevent: state\ndata: %s\n\n" % (RETRY_MILLISECONDS, orjson.dumps(data))
