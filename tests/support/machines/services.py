"""What the workers share: PostgreSQL, Redis, and the messaging service with its witness."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import create_engine
from sqlalchemy.engine import URL

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.cluster import running_node
from support.faults.rest import PATIENCE, until
from support.faults.standalone import free_port
from support.machines.deployed import LEDGER, create_databases
from support.postgres import DRIVER
from support.processes import listens, start

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.engine import Engine

    from support.cluster import Node

HOST = "127.0.0.1"
TOKEN = "sandbox-token-4567"
LATENCY = 2.0
"""Seconds of each response of the service, so that a send takes some 20 seconds."""


@dataclass(frozen=True)
class Services:
    """The running services.

    :param database: the server with the databases and roles of ``docs/deploy``.
    :param broker: URL of Redis.
    :param messaging: URL of the messaging service.
    :param witness: file of all messages that the service has taken.
    :param ledger: engine that reads the ledger past all links.
    """

    database: Node
    broker: str
    messaging: str
    witness: Path
    ledger: Engine


@contextmanager
def running_services(folder):
    """Run the services, and yield them. Leaving the context ends them.

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
        broker = running.enter_context(_running_broker(folder / "broker"))
        yield Services(database, broker, messaging, witness, ledger)


@contextmanager
def _running_broker(folder):
    """Run Redis, and yield its URL."""
    folder.mkdir()
    port = free_port()
    places = ("--bind", HOST, "--port", str(port), "--dir", str(folder))
    process = start(["redis-server", *places, "--save", "", "--appendonly", "yes"], folder, folder / "redis.out")
    try:
        until(lambda: listens(port), seconds=PATIENCE, what="Redis accepts connections")
        yield f"redis://{HOST}:{port}/0"
    finally:
        process.kill()
        process.wait()
