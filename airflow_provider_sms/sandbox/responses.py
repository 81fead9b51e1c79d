"""Answers that no HTTP framework offers: none at all, and half of one.

An ASGI application sees no socket. :class:`SandboxProtocol`, uvicorn's h11 protocol, therefore puts the
connection's transport into the request's state, from where the responses below take it to close it. Then they
wait until the server knows that the connection is gone: one that returns sooner makes it answer 500.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from starlette.types import Receive, Scope, Send

TRANSPORT = "sandbox_transport"

_LINGER_NOT = struct.pack("ii", 1, 0)  # close sends RST and drops what is unsent, socket(7)


class SandboxProtocol(H11Protocol):
    """The HTTP protocol of the sandbox: uvicorn's own, with the transport handed to the application."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin a connection.

        :param transport: the connection's transport.
        """
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer is 40 ms late
        super().connection_made(transport)
        self.app_state = {**self.app_state, TRANSPORT: transport}


class JsonResponse(Response):
    """An answer with a JSON body."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode the body.

        :param content: what JSON can hold.
        """
        return orjson.dumps(content)


class HangUp(Response):
    """No answer: the connection ends, and not a byte is written.

    :param reset: True ends it with RST, a connection reset; False (default) with FIN, an early end of stream.
    """

    def __init__(self, *, reset: bool = False) -> None:
        super().__init__()
        self._reset = reset

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Close the connection instead of answering."""
        transport: asyncio.Transport = scope["state"][TRANSPORT]
        if self._reset:
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        transport.abort()
        await gone(receive)


class Truncated(Response):
    """The first half of an answer under the headers of the whole, then the end of the connection.

    :param whole: the answer to cut.
    """

    def __init__(self, whole: Response) -> None:
        super().__init__()
        self._whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send headers and half of the body, and close the connection."""
        whole = self._whole
        half = bytes(whole.body)[: len(whole.body) // 2]
        await send({"type": "http.response.start", "status": whole.status_code, "headers": whole.raw_headers})
        await send({"type": "http.response.body", "body": half, "more_body": True})
        scope["state"][TRANSPORT].close()
        await gone(receive)


async def gone(receive: Receive) -> None:
    """Wait until the client, or the server itself, has ended the connection.

    :param receive: the request's channel of events.
    """
    while (await receive())["type"] != "http.disconnect":
        pass
