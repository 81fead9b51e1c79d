"""What the workers share: PostgreSQL, Redis, the messaging service, and the files of ``docs/deploy``."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import yaml
from sqlalchemy import create_engine
from sqlalchemy.engine import URL

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.cluster import LONGEST, _binaries, running_node
from support.faults.rest import PATIENCE
from support.faults.standalone import free_port
from support.pages import ROOT
from support.postgres import DRIVER
from support.processes import await_ready, listens, start, stop

HOST = "127.0.0.1"
TOKEN = "sandbox-token-4567"
LATENCY = 2.0
"""Seconds of each response of the service, so that a send takes some 20 seconds."""
DEPLOY = ROOT / "docs" / "deploy"
METADATA = "airflow"
"""Airflow's own database, and its role."""
LEDGER = "sms"
"""The ledger's database, and its role."""


@contextmanager
def running_services(folder):
    """Run the services, and yield them. Leaving the context ends them.

    They are the server of the databases, ``database``; the URLs of Redis, ``broker``, and of the messaging service,
    ``messaging``, with the file of all messages that it has taken, ``witness``; and an engine that reads the ledger
    past all links, ``ledger``.

    :param folder: for their files.
    """
    with ExitStack() as running:
        database = running.enter_context(running_node(address=(HOST, free_port()), max_connections="300"))
        passwords = dict.fromkeys(("AIRFLOW_DB_PASSWORD", "LEDGER_PASSWORD"), "a-password")
        create_databases(database, POSTGRES_USER="postgres", **passwords)
        url = URL.create(DRIVER, username="postgres", host=HOST, port=database.port, database=LEDGER)
        ledger = create_engine(url, isolation_level="AUTOCOMMIT", pool_pre_ping=True)
        running.callback(ledger.dispose)
        witness = folder / "witness.jsonl"
        sandbox = SandboxConfig(token=TOKEN, post_paid=True, latency=LATENCY, log=witness)
        messaging = running.enter_context(running_sandbox(sandbox)).base_url
        broker = _start_broker(folder / "broker", running)
        yield SimpleNamespace(database=database, broker=broker, messaging=messaging, witness=witness, ledger=ledger)


def _start_broker(folder, running):
    """Start Redis, and return its URL."""
    folder.mkdir()
    port = free_port()
    places = ("--bind", HOST, "--port", str(port), "--dir", str(folder))
    process = start(["redis-server", *places, "--save", "", "--appendonly", "yes"], folder, folder / "redis.out")
    running.callback(stop, [process], signal.SIGTERM, folder)
    await_ready(lambda: listens(port), [process], seconds=PATIENCE, what="Redis accepts connections")
    return f"redis://{HOST}:{port}/0"


def create_databases(node, **settings):
    """Run the script that makes databases and roles on an empty server.

    :param settings: user and passwords, as the Compose file gives them.
    """
    place = {"PGHOST": str(node.folder), "PGPORT": str(node.port), "PATH": f"{_binaries()}:{os.environ['PATH']}"}
    command = ["sh", DEPLOY / "create-databases.sh"]
    subprocess.run(command, env={**place, **settings}, check=True, capture_output=True, timeout=LONGEST)


def init_command():
    """Return the command of the Compose file's service ``init``."""
    init = _read("compose.yaml")["services"]["init"]
    return [*init["entrypoint"], *init["command"]]


def deployed_settings():
    """Return Airflow's settings of the files, as environment variables, but for places, folders and secrets."""
    found = {
        f"AIRFLOW__{section}__{name}".upper(): str(value)
        for section, options in _read("helm-values.yaml")["config"].items()
        for name, value in options.items()
    }
    compose = _read("compose.yaml")["x-airflow"]["environment"]
    found.update((name, value) for name, value in compose.items() if name.startswith("AIRFLOW__"))
    return {name: value for name, value in found.items() if not any(sign in value for sign in ("${", "/"))}


def _read(name):
    return yaml.safe_load((DEPLOY / name).read_text())
