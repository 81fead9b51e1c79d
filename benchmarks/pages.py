"""The pages as Airflow serves them, a process of its own, and people who look: ``python -m benchmarks.pages HOME``."""

from __future__ import annotations

import http.client
import json
import re
import socket
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from benchmarks.processes import WrongError, put, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.airflow import Airflows

USER, ROLE = "vic", "viewer"
SETTINGS = {
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:{ROLE}",
    "AIRFLOW__API_AUTH__JWT_SECRET": "a-secret-that-signs-what-tells-who-somebody-is, of this benchmark alone",
}
START_SECONDS = 60.0
LOOK_SECONDS = 60.0


@dataclass(frozen=True)
class Look:
    """A page that was asked for.

    :param seconds: from the question to the last byte of the answer.
    """

    status: int
    seconds: float
    html: str


class Pages:
    """Pages that are being served.

    :param port: where, on this machine.
    :param cookie: tells Airflow who looks.
    """

    def __init__(self, port: int, cookie: str) -> None:
        self._port = port
        self._headers = {"Cookie": cookie, "Accept": "text/html"}

    def look(self, path: str) -> Look:
        """Ask for a page.

        :param path: below the plugin's own address.
        """
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=LOOK_SECONDS)
        try:
            connection.request("GET", f"/sms{path}", headers=self._headers)
            answer = connection.getresponse()
            html = answer.read().decode()
        finally:
            connection.close()
        return Look(answer.status, time.perf_counter() - began, html)

    def shown(self, path: str) -> float:
        """Ask for a page that is there, and give the seconds that it took.

        :raises WrongError: it is not there.
        """
        look = self.look(path)
        if look.status != HTTPStatus.OK:
            raise WrongError(f"{path}: {look.status} {look.html[-500:]}")
        return look.seconds


@dataclass(frozen=True)
class Asking:
    """A page that is open, and asks again and again.

    :param every: seconds from one question to the next.
    :param name: of the campaign that it shows, as soon as that is in the list; empty: it shows the list.
    """

    every: float
    name: str = ""


class Watcher:
    """Pages that are open.

    :param pages: that they ask.
    :param asking: how each does.
    """

    def __init__(self, pages: Pages, asking: Sequence[Asking]) -> None:
        self.seconds: list[list[float]] = [[] for _ in asking]
        self._pages = pages
        self._asking = asking
        self._wrong: list[str] = []
        self._over = threading.Event()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look, until the block's end.

        :raises WrongError: a page failed, or was never seen.
        """
        threads = [
            threading.Thread(target=self._ask, args=each) for each in zip(self._asking, self.seconds, strict=True)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        if self._wrong or not all(self.seconds):
            raise WrongError(f"pages that were looked at: {self._wrong or 'one was never there'}")

    def _ask(self, asking: Asking, seconds: list[float]) -> None:
        address = "" if asking.name else "/"
        next_at, over = time.monotonic(), False
        while not over:
            over = self._over.wait(max(0.0, next_at - time.monotonic()))
            if over and seconds:
                return
            # However short the block is, each page is seen once.
            next_at = max(next_at + asking.every, time.monotonic())
            try:
                address = address or self._address(asking.name)
                if address:
                    seconds.append(self._pages.shown(address))
            except (OSError, WrongError) as error:
                self._wrong.append(f"{address or asking.name}: {error}")
                return

    def _address(self, name: str) -> str:
        found = re.search(r"/sms(/campaigns/\d+)", self._pages.look(f"/?name={quote(name)}").html)
        return found[1] if found else ""


@contextmanager
def running_pages(airflows: Airflows, ledger: Mapping[str, str]) -> Iterator[Pages]:
    """Serve the pages of a ledger.

    :param ledger: Airflow's settings that lead to it.
    """
    with airflows.process("benchmarks.pages", {**SETTINGS, **ledger}) as (process, home, log):
        told = home / "served.json"
        wait_for(told.exists, process, log, seconds=START_SECONDS)
        pages = Pages(**json.loads(told.read_bytes()))
        # What a process of Airflow does once only is not a page's.
        pages.shown("/look-up")
        yield pages


def main() -> None:
    """Serve until the process is ended; say where in a file of the home."""
    import uvicorn
    from airflow.api_fastapi.app import get_auth_manager, init_auth_manager
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from fastapi import FastAPI
    from sqlalchemy.orm import configure_mappers

    from airflow_provider_sms.plugins.sms import SmsPlugin

    # As Airflow's own pages have had it done.
    configure_mappers()
    root = FastAPI()
    (mounted,) = SmsPlugin().fastapi_apps
    root.mount(mounted["url_prefix"], mounted["app"])
    init_auth_manager(root)
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=USER, role=ROLE))
    listening = socket.create_server(("127.0.0.1", 0))
    told = {"port": listening.getsockname()[1], "cookie": f"{COOKIE_NAME_JWT_TOKEN}={token}"}
    put(Path(sys.argv[1]) / "served.json", told)
    uvicorn.Server(uvicorn.Config(root, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
