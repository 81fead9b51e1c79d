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

HOUSEKEEPING_SECONDS = 1.0
LAST_WRITES_SECONDS = 5.0


class SandboxServer(uvicorn.Server):
    """uvicorn's server, made to start and stop at once.

    uvicorn itself looks only ten times a second whether it should stop, and then waits for its clients. A
    service that goes away does not wait, nor does this one: open connections end, an answer due or not.

    :param config: the sandbox's settings.
    :param on_ready: called once connections are accepted.
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
                timeout_keep_alive=config.keep_alive,  # type: ignore[arg-type]  # asyncio takes fractions too
            )
        )
        self.state: SandboxState = app.state.sandbox
        host, port = self._listener.getsockname()[:2]
        self.root_url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._on_ready = on_ready
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run_until_stopped(self) -> None:
        """Serve until :meth:`stop`, SIGINT or SIGTERM. Signals are heard in the main thread only."""
        self.run(sockets=[self._listener])

    def stop(self) -> None:
        """Ask the server to stop, from any thread or from a signal handler."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: it has stopped already
                self._loop.call_soon_threadsafe(self._stop.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Stop on a signal, and let the process end as if it had finished.

        :param sig: the signal.
        :param frame: where it met the process.
        """
        self.stop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections.

        :param sockets: the sockets to listen on.
        """
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._on_ready()

    async def main_loop(self) -> None:
        """Wait until the server should stop, renewing the ``Date`` header meanwhile."""
        while not await self.on_tick(0):
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stop.wait(), HOUSEKEEPING_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End every connection, and leave only when what is being accepted is in the witness.

        :param sockets: the sockets it listened on.
        """
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
            connection.transport.abort()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=LAST_WRITES_SECONDS)
        await asyncio.sleep(0)  # lets the transports close their sockets
        await self.lifespan.shutdown()


@dataclass(frozen=True, slots=True)
class SandboxHandle:
    """A running sandbox, as tests see it.

    :param base_url: base URL of the service, ending in ``/v1``.
    :param control_url: base URL of the control paths, ending in ``/_sandbox``.
    :param state: the sandbox's memory, for reading and for setting faults; readable after the end, too.
    """

    base_url: str
    control_url: str
    state: SandboxState


@contextmanager
def running_sandbox(config: SandboxConfig | None = None) -> Iterator[SandboxHandle]:
    """Run a sandbox in a thread. Leaving ends every connection and the thread.

    :param config: the sandbox's settings; None, the default, takes the defaults.
    :raises OSError: when the port is taken or the witness cannot be opened.
    """
    ready = threading.Event()
    server = SandboxServer(config or SandboxConfig(), ready.set)

    def serve() -> None:
        try:
            server.run_until_stopped()
        finally:
            ready.set()  # a server that failed to start must not leave its caller waiting

    thread = threading.Thread(target=serve, name="sms-sandbox", daemon=True)
    thread.start()
    try:
        ready.wait()
        yield SandboxHandle(f"{server.root_url}/v1", f"{server.root_url}/_sandbox", server.state)
    finally:
        server.stop()
        thread.join()


def _listen(config: SandboxConfig) -> socket.socket:
    host = "127.0.0.1" if config.host == "localhost" else config.host  # whatever the hosts file makes of that name
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, config.port), family=family)
