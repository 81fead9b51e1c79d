"""The sandbox's server: in the foreground for the command line, in a thread for tests."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn

from airflow_provider_sms.sandbox.app import create_app
from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.responses import SandboxProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from airflow_provider_sms.sandbox.state import SandboxState

TICK_SECONDS = 1.0
"""Interval of uvicorn's housekeeping, which renews the ``Date`` header; that header counts in seconds."""
SHUTDOWN_SECONDS = 5.0
"""Time for requests in progress to reach the witness, at most: a few fsyncs of a slow disk."""


class SandboxServer(uvicorn.Server):
    """uvicorn's server, except that it starts and stops at once.

    uvicorn checks only ten times a second whether to stop, and then waits for its clients. A service that goes away
    waits for no client, and neither does this server: it ends open connections, even those with a response pending.

    :param config: the sandbox's settings.
    :param on_ready: function to call once the server accepts connections.
    :raises OSError: when the port is taken or the witness cannot be opened.
    """

    def __init__(self, config: SandboxConfig, on_ready: Callable[[], None]) -> None:
        self._listener = _listen(config)
        try:
            app = create_app(config)
        except BaseException:
            self._listener.close()
            raise
        super().__init__(
            uvicorn.Config(
                app,
                http=SandboxProtocol,
                loop="asyncio",
                ws="none",
                lifespan="on",
                access_log=False,
                log_config=None,
                log_level="warning",
                server_header=False,
                timeout_keep_alive=config.keep_alive,  # type: ignore[arg-type]  # asyncio accepts fractions
            )
        )
        self.state: SandboxState = app.state.sandbox
        host, port = self._listener.getsockname()[:2]
        self.root_url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._on_ready = on_ready
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run_until_stopped(self) -> None:
        """Serve until :meth:`stop`, SIGINT or SIGTERM. Only the main thread receives signals."""
        self.run(sockets=[self._listener])

    def stop(self) -> None:
        """Tell the server to stop. May be called from any thread and from a signal handler."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the server has stopped already
                self._loop.call_soon_threadsafe(self._stop.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Stop on a signal, so that the process exits with status 0.

        :param sig: the signal.
        :param frame: the interrupted frame.
        """
        self.stop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections.

        :param sockets: the sockets to listen on.
        """
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._on_ready()

    async def main_loop(self) -> None:
        """Wait until the server should stop, and renew the ``Date`` header meanwhile."""
        while not await self.on_tick(0):
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stop.wait(), TICK_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End every connection, and return only once messages that are being accepted are in the witness.

        :param sockets: the sockets that the server listened on.
        """
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
            connection.transport.abort()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=SHUTDOWN_SECONDS)
        await asyncio.sleep(0)  # lets the transports close their sockets
        await self.lifespan.shutdown()


@dataclass(frozen=True, slots=True)
class SandboxHandle:
    """A running sandbox, for tests.

    :param base_url: base URL of the service, ending in ``/v1``.
    :param control_url: base URL of the control paths, ending in ``/_sandbox``.
    :param state: the sandbox's memory, for reading and for setting faults; still readable after the end.
    """

    base_url: str
    control_url: str
    state: SandboxState


@contextmanager
def running_sandbox(config: SandboxConfig | None = None) -> Iterator[SandboxHandle]:
    """Run a sandbox in a thread. Leaving the context ends every connection and the thread.

    :param config: the sandbox's settings; None, the default, uses their defaults.
    :raises OSError: when the port is taken or the witness cannot be opened.
    """
    ready = threading.Event()
    server = SandboxServer(config or SandboxConfig(), ready.set)

    def serve() -> None:
        try:
            server.run_until_stopped()
        finally:
            ready.set()  # a server that fails to start must not leave its caller waiting

    thread = threading.Thread(target=serve, name="sms-sandbox", daemon=True)
    thread.start()
    try:
        ready.wait()
        yield SandboxHandle(f"{server.root_url}/v1", f"{server.root_url}/_sandbox", server.state)
    finally:
        server.stop()
        thread.join()


def _listen(config: SandboxConfig) -> socket.socket:
    host = "127.0.0.1" if config.host == "localhost" else config.host  # whatever the hosts file maps that name to
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, config.port), family=family)
