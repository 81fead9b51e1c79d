"""Airflow's web server with the pages, in a separate process."""

from __future__ import annotations

import http.client
import socket
import time
from contextlib import closing
from http import HTTPStatus

from benchmarks.full_ledger import DAGS
from demo.processes import answer

SETTINGS = {
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "viewer:viewer",
    "AIRFLOW__API_AUTH__JWT_SECRET": "a-secret-that-signs-what-tells-who-somebody-is, of this benchmark alone",
}
"""Airflow's settings for the web server."""


def seconds_of(path: str, port: int, cookie: str) -> float:
    """Request a path of the web server, and return the seconds until the last byte of the response.

    :param cookie: a viewer's session in Airflow.
    :raises RuntimeError: when the response is not a 200.
    """
    began = time.perf_counter()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", path, headers={"Cookie": cookie, "Accept": "text/html"})
        response = connection.getresponse()
        body = response.read()
    if response.status != HTTPStatus.OK:
        raise RuntimeError(f"{path}: {response.status} {body[-500:].decode()}")
    return time.perf_counter() - began


def main() -> None:
    """Serve until the process is killed, after answering with the port and a cookie."""
    import uvicorn
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    add_dags()
    root = create_app()
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="viewer", role="viewer"))
    listening = socket.create_server(("127.0.0.1", 0))
    answer({"port": listening.getsockname()[1], "cookie": f"{COOKIE_NAME_JWT_TOKEN}={token}"})
    uvicorn.Server(uvicorn.Config(root, log_level="warning")).run(sockets=[listening])


def add_dags() -> None:
    """Put the DAGs of the full ledger into Airflow's database, as if it had parsed them."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.merge(DagBundleModel(name="dags"))
        session.flush()
        for dag_id in (f"dag_{number}" for number in range(DAGS)):
            dag = DagModel(dag_id=dag_id, bundle_name="dags", is_stale=False, is_paused=True)  # type: ignore[no-untyped-call]
            dag.fileloc, dag.relative_fileloc, dag.owners = f"/dags/{dag_id}.py", f"{dag_id}.py", "airflow"
            dag.max_active_tasks, dag.max_consecutive_failed_dag_runs = 16, 0
            session.merge(dag)


if __name__ == "__main__":
    main()
