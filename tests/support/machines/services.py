"""What the machines share: PostgreSQL, pgbouncer, Redis, and the messaging service with its witness."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlalchemy import create_engine
from sqlalchemy.engine import URL

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import SandboxHandle, running_sandbox
from support.cluster import Node, Pooler, running_node, running_pair, running_pooler
from support.faults.rest import PATIENCE, until
from support.forwarder import Forwarder
from support.machines.deployed import LEDGER, create_databases
from support.machines.network import answers
from support.postgres import DRIVER

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "sandbox-token-4567"
LATENCY = 2.0
"""Seconds of each response of the service, so that a send takes some 20 seconds."""
POSTGRES = {"max_connections": "300"}


class Broker:
    """Redis, which keeps its queues in a file, as a broker should.

    :param place: host and port to listen on.
    """

    def __init__(self, place, folder):
        self.place = place
        self._folder = folder
        folder.mkdir()
        self._process = None

    def start(self):
        """Start it, and return once it accepts connections."""
        host, port = self.place
        with (self._folder / "redis.out").open("ab") as output:
            self._process = subprocess.Popen(
                [
                    *("redis-server", "--bind", host, "--port", str(port), "--protected-mode", "no"),
                    *("--set-proc-title", "no"),  # a title is written over what a process inherited
                    *("--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir", str(self._folder)),
                ],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(lambda: answers(self.place), seconds=PATIENCE, what="Redis accepts connections")

    def empty(self):
        """Start it anew, without what it kept."""
        self.kill()
        shutil.rmtree(self._folder / "appendonlydir", ignore_errors=True)
        self.start()

    def kill(self):
        """End it at once; do nothing when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@dataclass(frozen=True)
class Services:
    """The running services.

    :param database: the primary, with the databases and roles of ``docs/deploy``.
    :param standby: None where none was asked for.
    :param pooler: pgbouncer, at the place ``pooler``; None where none was asked for.
    :param messaging: the sandbox, whose ``state`` sets faults.
    :param witness: file of all messages that the service has taken.
    :param ledger: engine that reads the ledger past all links.
    """

    database: Node
    standby: Node | None
    pooler: Pooler | None
    broker: Broker
    messaging: SandboxHandle
    witness: Path
    ledger: Any

    def fail_over(self):
        """Kill the primary, and let the standby take its address, some seconds later; connections break."""
        self.database.stop()
        self.standby.promote()
        self.standby.stop()
        self.standby.address = self.database.address
        self.standby.start()


@contextmanager
def running_services(network, folder, *, standby=False, pooler=False):
    """Run the services, and yield them. Leaving the context ends them.

    :param network: :class:`~support.machines.network.Relays` or ``Namespaces``.
    :param folder: for their files.
    :param standby: whether a synchronous standby runs.
    :param pooler: whether pgbouncer runs in front of the database, at the place ``pooler``.
    """
    with ExitStack() as running:
        place = network.place("database")
        if standby:
            pair = running.enter_context(running_pair(synchronous=True, address=place, **POSTGRES))
            database, second = pair.primary, pair.standby
        else:
            database = running.enter_context(running_node(address=place, **POSTGRES))
            second = None
        create_databases(database)
        way = Server(*place)
        pooling = running.enter_context(running_pooler(way, network.place("pooler"))) if pooler else None
        broker = Broker(network.place("broker"), folder / "broker")
        running.callback(broker.kill)
        broker.start()
        witness = folder / "witness.jsonl"
        messaging = running.enter_context(
            running_sandbox(SandboxConfig(token=TOKEN, post_paid=True, latency=LATENCY, log=witness))
        )
        # The sandbox listens on 127.0.0.1 only; the triggerer in the middle asks it there.
        there = urlsplit(messaging.base_url)
        where = network.place("messaging")
        for host in {where[0], "127.0.0.1"}:
            running.enter_context(Forwarder((there.hostname, there.port), (host, where[1])))
        # By its address, which a standby takes over.
        url = URL.create(DRIVER, username="postgres", host=way.host, port=way.port, database=LEDGER)
        ledger = create_engine(url, isolation_level="AUTOCOMMIT", pool_pre_ping=True)
        running.callback(ledger.dispose)
        yield Services(database, second, pooling, broker, messaging, witness, ledger)


@dataclass(frozen=True)
class Server:
    """Where a server listens."""

    host: str
    port: int
