"""Run a real intermediary, as Debian packages it, in the foreground and in a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from support.certificates import make_certificate

if TYPE_CHECKING:
    from typing_extensions import Self

REQUIRED = "SMS_TESTS_NEED_PROXIES"
"""Environment variable; when it is set, a missing package fails the tests instead of skipping them."""
READY_SECONDS = 30.0
PATIENCE_MS = 500
"""Milliseconds that an intermediary waits for the origin, instead of the packages' 50 or 60 seconds."""
SHORT_MS = 50
"""Milliseconds after which an idle connection is closed in the setups that keep none for long."""


def is_required() -> bool:
    """Return whether a missing package must fail the tests."""
    return bool(os.environ.get(REQUIRED))


@dataclass(frozen=True, slots=True)
class Setup:
    """One configuration of an intermediary.

    :param settings: text to insert, by its place in the configuration.
    :param resends: whether the intermediary repeats requests that it has passed on: then it texts people twice, and no
        client can prevent it.
    :param pause: seconds before each request of ours.
    :param tls: whether it speaks TLS to the client, with a certificate of its own.
    """

    name: str
    settings: dict[str, str]
    resends: bool = False
    pause: float = 0.0
    tls: bool = False


class Intermediary(ABC):
    """A running intermediary.

    :param setup: its configuration.
    :param origin_port: port of the service on 127.0.0.1.
    """

    program: ClassVar[str]
    package: ClassVar[str]
    setups: ClassVar[tuple[Setup, ...]]

    def __init__(self, setup: Setup, origin_port: int) -> None:
        self.setup = setup
        self.port = _free_port()
        self.certificate: Path | None = None
        self._origin_port = origin_port

    @classmethod
    def path(cls) -> str | None:
        """Return the path of the program; None if it is not installed."""
        return shutil.which(cls.program, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix=f"airflow-provider-sms-{self.program}-"))
        try:
            if self.setup.tls:
                self.certificate = make_certificate(self.folder)
            self.configure()
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(AttributeError):
            self._end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    @abstractmethod
    def configure(self) -> None:
        """Write the configuration."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return the arguments that start the program in the foreground."""

    @abstractmethod
    def reload(self) -> None:
        """Reload the configuration in the way that the package does it."""

    @property
    def url(self) -> str:
        """The URL of the intermediary, without a path."""
        return f"{'https' if self.setup.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def runs(self) -> bool:
        """Whether the main process is alive."""
        return self._process.poll() is None

    @property
    def group(self) -> int:
        """The process group of everything that it started."""
        return self._process.pid

    def restart(self) -> None:
        """Stop the intermediary by SIGTERM, and start it again on the same port."""
        self._end(signal.SIGTERM)
        self._start()

    def kill(self) -> None:
        """Kill every process of the intermediary, and start it again on the same port."""
        self._end(signal.SIGKILL)
        self._start()

    def _start(self) -> None:
        with (self.folder / "output").open("ab") as output:
            # In a group of its own, so that the processes that it starts can be ended with it.
            self._process = subprocess.Popen(
                [str(self.path()), *self.command()],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._guard = _guard(self._process.pid)
        end = time.monotonic() + READY_SECONDS
        while not self._accepts():
            if self._process.poll() is not None or time.monotonic() > end:
                said = (self.folder / "output").read_text(errors="replace")
                raise RuntimeError(f"{self.program}, {self.setup.name}, did not start: {said[-2000:]}")
            time.sleep(0.01)

    def _accepts(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def _end(self, how: signal.Signals) -> None:
        """End every process, and return once the port is free."""
        process = self._process
        if how is not signal.SIGKILL and process.poll() is None:
            process.send_signal(how)
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._guard.communicate(b"\n")
        end = time.monotonic() + READY_SECONDS
        while self._accepts() and time.monotonic() < end:
            time.sleep(0.01)


def _guard(group: int) -> subprocess.Popen[bytes]:
    """Start a process that kills a process group once this process is gone, however it ended.

    A line on its standard input ends it without that.
    """
    command = ["sh", "-c", 'read -r _ || kill -KILL "-$1"', "sh", str(group)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
