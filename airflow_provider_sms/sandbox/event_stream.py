"""The stream that keeps an open page up to date: server-sent events (WHATWG HTML, section 9.2)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import Response

from airflow_provider_sms.sandbox.client_advice import EFFECTS, advice_for
from airflow_provider_sms.sandbox.response_bodies import json_number
from airflow_provider_sms.sandbox.responses import wait_for_disconnect

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from airflow_provider_sms.sandbox.faults import Fault
    from airflow_provider_sms.sandbox.state import SandboxState, Snapshot

INTERVAL_SECONDS = 0.25
"""Time between two snapshots. All changes within it share one event, even a thousand messages."""
MAX_FAULTS = 50
"""Waiting faults in one event, at most: more than a person reads."""
RETRY_MILLISECONDS = 1000
"""Time after which a browser reconnects to a stream that broke."""


class EventStream(Response):
    """A response that lasts as long as the page: the current state at once, then again after each change.

    An event holds counts, the account and the next faults, but no messages: the page requests the rows that it shows.
    A broken stream therefore loses nothing, and the next one needs no knowledge of the last.

    :param state: the sandbox's memory.
    """

    media_type = "text/event-stream"

    def __init__(self, state: SandboxState) -> None:
        super().__init__(headers={"Cache-Control": "no-store"})
        del self.headers["content-length"]  # set by the framework for an empty body
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send events until the page disconnects or the server ends the connection."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        disconnected = asyncio.ensure_future(wait_for_disconnect(receive))
        last: Snapshot | None = None
        try:
            while not disconnected.done():
                snapshot = self._state.snapshot()
                if snapshot != last:
                    await send({"type": "http.response.body", "body": self._event(snapshot), "more_body": True})
                    last = snapshot
                # A snapshot reads a few numbers. A notification per message would slow down each send request.
                await asyncio.wait({disconnected}, timeout=INTERVAL_SECONDS)
        finally:
            disconnected.cancel()

    def _event(self, snapshot: Snapshot) -> bytes:
        waiting, faults = self._state.faults.first(MAX_FAULTS)
        data = {
            "epoch": snapshot.epoch,
            "requests": snapshot.requests,
            "messages": snapshot.messages,
            "balance": json_number(snapshot.balance),
            "post_paid": snapshot.post_paid,
            "waiting_faults": waiting,
            "faults": [_fault_row(fault, left) for fault, left in faults],
        }
        return b"retry: %d\nevent: state\ndata: %s\n\n" % (RETRY_MILLISECONDS, orjson.dumps(data))


def _fault_row(fault: Fault, left: int) -> dict[str, Any]:
    """Return a waiting fault, with the number of requests that it still applies to."""
    return {
        "kind": fault.kind,
        "on": fault.on,
        "left": left,
        "persistent": fault.persistent,
        "status": fault.status if fault.kind == "status" else None,
        "accepted": fault.kind == "status" and fault.accepted,
        "by": fault.by if fault.kind == "status" else None,
        "retry_after": fault.retry_after if fault.kind == "status" else None,
        "seconds": fault.seconds if fault.kind == "delay" else None,
        "charge_after": fault.charge_after or None,
        "amount": fault.amount if fault.kind == "spend" else None,
        "when": fault.when if fault.kind == "spend" else None,
        "effect": EFFECTS[fault.kind],
        "advice": advice_for(fault),
    }
