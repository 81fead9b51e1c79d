"""The pages as Airflow serves them in a separate process, and their viewers: ``python -m benchmarks.pages HOME``."""

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
    """The response to a page request.

    :param seconds: time from the request to the last byte of the response.
    """

    status: int
    seconds: float
    html: str


class Pages:
    """Running pages.

    :param port: port on this machine.
    :param cookie: the viewer's session in Airflow.
    """

    def __init__(self, port: int, cookie: str) -> None:
        self._port = port
        self._headers = {"Cookie": cookie, "Accept": "text/html"}

    def look(self, path: str, name: str = "") -> Look:
        """Request a page.

        :param path: path below the plugin's URL.
        :param name: the name by which the list is searched; empty means any.
        """
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=LOOK_SECONDS)
        try:
            named = {"X-SMS-Name": quote(name)} if name else {}
            connection.request("GET", f"/sms{path}", headers={**self._headers, **named})
            response = connection.getresponse()
            html = response.read().decode()
        finally:
            connection.close()
        return Look(response.status, time.perf_counter() - began, html)

    def shown(self, path: str) -> float:
        """Request a page that exists, and return the seconds until its last byte.

        :raises WrongError: when the response is not a 200.
        """
        look = self.look(path)
        if look.status != HTTPStatus.OK:
            raise WrongError(f"{path}: {look.status} {look.html[-500:]}")
        return look.seconds


@dataclass(frozen=True)
class Asking:
    """An open page, which refreshes regularly.

    :param every: seconds between refreshes.
    :param name: name of the campaign to show once it is in the list; empty shows the list.
    """

    every: float
    name: str = ""


class Watcher:
    """Open pages.

    :param pages: the server of the pages.
    :param asking: the refreshes of each page.
    """

    def __init__(self, pages: Pages, asking: Sequence[Asking]) -> None:
        self.seconds: list[list[float]] = [[] for _ in asking]
        self._pages = pages
        self._asking = asking
        self._wrong: list[str] = []
        self._over = threading.Event()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Refresh the pages until the end of the block.

        :raises WrongError: when a page failed, or was never loaded.
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
            raise WrongError(f"open pages: {self._wrong or 'one was never loaded'}")

    def _ask(self, asking: Asking, seconds: list[float]) -> None:
        address = "" if asking.name else "/"
        next_at, over = time.monotonic(), False
        while not over:
            over = self._over.wait(max(0.0, next_at - time.monotonic()))
            if over and seconds:
                return
            # Each page is loaded once, however short the block is.
            next_at = max(next_at + asking.every, time.monotonic())
            try:
                address = address or self._address(asking.name)
                if address:
                    seconds.append(self._pages.shown(address))
            except (OSError, WrongError) as error:
                self._wrong.append(f"{address or asking.name}: {error}")
                return

    def _address(self, name: str) -> str:
        found = re.search(r"/sms(/campaigns/\d+)", self._pages.look("/", name).html)
        return found[1] if found else ""


@contextmanager
def running_pages(airflows: Airflows, ledger: Mapping[str, str]) -> Iterator[Pages]:
    """Serve the pages of a ledger.

    :param ledger: Airflow's settings for the ledger.
    """
    with airflows.process("benchmarks.pages", {**SETTINGS, **ledger}) as (process, home, log):
        served = home / "served.json"
        wait_for(served.exists, process, log, seconds=START_SECONDS)
        pages = Pages(**json.loads(served.read_bytes()))
        # The first request pays for what a process of Airflow does only once.
        pages.shown("/balance")
        yield pages


def main() -> None:
    """Serve until the process is killed, after writing port and cookie into a file of the home."""
    import uvicorn
    from airflow.api_fastapi.app import get_auth_manager, init_auth_manager
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from fastapi import FastAPI
    from sqlalchemy.orm import configure_mappers

    from airflow_provider_sms.plugins.sms import SmsPlugin

    # As Airflow's own pages have done before.
    configure_mappers()
    root = FastAPI()
    (mounted,) = SmsPlugin().fastapi_apps
    root.mount(mounted["url_prefix"], mounted["app"])
    init_auth_manager(root)
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=USER, role=ROLE))
    listening = socket.create_server(("127.0.0.1", 0))
    address = {"port": listening.getsockname()[1], "cookie": f"{COOKIE_NAME_JWT_TOKEN}={token}"}
    put(Path(sys.argv[1]) / "served.json", address)
    uvicorn.Server(uvicorn.Config(root, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
