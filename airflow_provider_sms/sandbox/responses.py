"""Responses that no HTTP framework offers: none at all, and half of one.

An ASGI application has no access to the socket. :class:`SandboxProtocol`, uvicorn's h11 protocol, therefore puts the
connection's transport into the request's state, and the responses below close it. Afterwards they wait until the
server has noticed the disconnect: a response that returned sooner would make the server respond with 500.
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

_NO_LINGER = struct.pack("ii", 1, 0)  # closing sends RST and discards unsent bytes, socket(7)


class SandboxProtocol(H11Protocol):
    """The sandbox's HTTP protocol: uvicorn's own, which also passes the transport to the application."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin a connection.

        :param transport: the connection's transport.
        """
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # otherwise each response is 40 ms late
        super().connection_made(transport)
        self.app_state = {**self.app_state, TRANSPORT: transport}


class JsonResponse(Response):
    """A response with a JSON body."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the encoded body.

        :param content: a value that JSON can represent.
        """
        return orjson.dumps(content)


class HangUp(Response):
    """No response: the connection ends without a byte.

    :param reset: True ends the connection with RST, a reset; False (default) with FIN, an early end of stream.
    """

    def __init__(self, *, reset: bool = False) -> None:
        super().__init__()
        self._reset = reset

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Close the connection instead of responding."""
        transport: asyncio.Transport = scope["state"][TRANSPORT]
        if self._reset:
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        transport.abort()
        await wait_for_disconnect(receive)


class TruncatedResponse(Response):
    """The headers of a whole response and the first half of its body, then the end of the connection.

    :param whole: the response to truncate.
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
        await wait_for_disconnect(receive)


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client or the server has ended the connection.

    :param receive: the request's ASGI channel of events.
    """
    while (await receive())["type"] != "http.disconnect":
        pass
