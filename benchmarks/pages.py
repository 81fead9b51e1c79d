"""Airflow's web server with the pages in a separate process, and its users: ``python -m benchmarks.pages HOME``."""

from __future__ import annotations

import http.client
import json
import socket
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.full_ledger import dag_ids
from benchmarks.processes import WrongError, put, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.airflow import Airflows

USERS = 41
"""The viewer whose pages are measured, and 40 others."""
ROLE = "viewer"
SETTINGS = {
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"viewer{number}:{ROLE}" for number in range(USERS)),
    # Forty requests of Airflow's own at once need as many connections.
    "AIRFLOW__DATABASE__SQL_ALCHEMY_POOL_SIZE": "50",
    "AIRFLOW__API_AUTH__JWT_SECRET": "a-secret-that-signs-what-tells-who-somebody-is, of this benchmark alone",
}
START_SECONDS = 120.0
AIRFLOWS_OWN = "/api/v2/dags"
"""A request of Airflow's own, to compare with: the list of DAGs."""
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
    :param cookies: the session of each user in Airflow.
    """

    def __init__(self, port: int, cookies: Sequence[str]) -> None:
        self._port = port
        self._cookies = cookies

    def request(self, path: str, user: int = 0) -> Look:
        """Request a path of the web server.

        :param user: the number of the user.
        """
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=LOOK_SECONDS)
        try:
            connection.request("GET", path, headers={"Cookie": self._cookies[user], "Accept": "text/html"})
            response = connection.getresponse()
            html = response.read().decode()
        finally:
            connection.close()
        return Look(response.status, time.perf_counter() - began, html)

    def shown(self, path: str) -> float:
        """Request a page that exists, and return the seconds until its last byte.

        :param path: path below the plugin's URL.
        :raises WrongError: when the response is not a 200.
        """
        return _ok(path, self.request(f"/sms{path}")).seconds

    def airflows_own(self) -> float:
        """Request a page of Airflow's own API, and return the seconds until its last byte.

        :raises WrongError: when the response is not a 200.
        """
        return _ok(AIRFLOWS_OWN, self.request(AIRFLOWS_OWN)).seconds


def _ok(path: str, look: Look) -> Look:
    if look.status != HTTPStatus.OK:
        raise WrongError(f"{path}: {look.status} {look.html[-500:]}")
    return look


@contextmanager
def running_pages(airflows: Airflows, ledger: Mapping[str, str]) -> Iterator[Pages]:
    """Serve Airflow's API and the pages of a ledger.

    :param ledger: Airflow's settings for the ledger.
    """
    with airflows.process("benchmarks.pages", {**SETTINGS, **ledger}) as (process, home, log):
        served = home / "served.json"
        wait_for(served.exists, process, log, seconds=START_SECONDS)
        pages = Pages(**json.loads(served.read_bytes()))
        # The first request pays for what a process of Airflow does only once.
        pages.shown("/")
        yield pages


def main() -> None:
    """Serve until the process is killed, after writing port and cookies into a file of the home."""
    import uvicorn
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    add_dags()
    root = create_app()
    users = (SimpleAuthManagerUser(username=f"viewer{number}", role=ROLE) for number in range(USERS))
    cookies = [f"{COOKIE_NAME_JWT_TOKEN}={get_auth_manager().generate_jwt(user)}" for user in users]
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    put(Path(sys.argv[1]) / "served.json", {"port": listening.getsockname()[1], "cookies": cookies})
    uvicorn.Server(uvicorn.Config(root, log_level="warning")).run(sockets=[listening])


def add_dags() -> None:
    """Put the DAGs of the full ledger into Airflow's database, as if it had parsed them."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.merge(DagBundleModel(name="dags"))
        session.flush()
        for dag_id in dag_ids():
            dag = DagModel(dag_id=dag_id, bundle_name="dags", is_stale=False, is_paused=True)  # type: ignore[no-untyped-call]
            dag.fileloc, dag.relative_fileloc, dag.owners = f"/dags/{dag_id}.py", f"{dag_id}.py", "airflow"
            dag.max_active_tasks, dag.max_consecutive_failed_dag_runs = 16, 0
            session.merge(dag)


if __name__ == "__main__":
    main()
