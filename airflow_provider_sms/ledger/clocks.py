"""The time of a ledger: the same for all processes that share it, even if somebody sets a machine's clock.

A claim lapses at its deadline (:mod:`airflow_provider_sms.ledger.transitions`), and a policy or a person may then have
its messages sent again. A clock that was set in between would end the claims of live processes. So no deadline is
compared with a clock that can be set on the sender's machine: a ledger on a server goes by the server's clock, one in a
file by the time since the machine's start.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, exists, insert, or_, select, text, true, update

from airflow_provider_sms.ledger.model import CLAIMED, UNKNOWN
from airflow_provider_sms.ledger.schema import boot_clock, request
from airflow_provider_sms.ledger.transitions import lapse
from airflow_provider_sms.service.elapsed import elapsed as elapsed_here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import TextClause

PROMPT_SECONDS = 1.0
"""Seconds after which the server is asked again, since its answer is out of date; well below a claim's margin."""

SLACK_SECONDS = 1.0
"""Seconds by which a file's time may differ from the machine's clock before it is set again."""

HOLD_SECONDS = 86_400.0
"""Seconds after the claim of an unknown request in which a file's time is not set: as long as a task may be told to
wait for a charge, and longer than any other wait for the outcome."""

_NOW = text("SELECT extract(epoch FROM clock_timestamp())")


class ServerClock:
    """Seconds since the epoch as the server last stated them, plus what has elapsed here since.

    :param elapsed: seconds from any start, by a clock that nobody can set.
    """

    def __init__(self, elapsed: Callable[[], float] = elapsed_here) -> None:
        self._elapsed = elapsed
        self._ahead = 0.0

    def __call__(self) -> float:
        """Return what time it is."""
        return self._elapsed() + self._ahead

    def read(
        self, connection: Connection, statement: TextClause = _NOW, values: Mapping[str, Any] | None = None
    ) -> None:
        """Ask the server.

        :param statement: returns the time in seconds since the epoch, as the last thing that it does.
        :param values: the statement's parameters.
        """
        asked = self._elapsed()
        server = connection.execute(statement, values or {}).scalar_one()
        if self._elapsed() - asked > PROMPT_SECONDS:
            # It waited for a lock, or this machine slept: the answer may be out of date.
            server = connection.execute(_NOW).scalar_one()
        self._ahead = float(server) - self._elapsed()


class BootClock:
    """Seconds since the epoch, by the time since the machine's start, for a ledger in a file.

    The ledger stores how far that is from the epoch, so that a process that began before the machine's clock was set
    agrees with one that began after it. Where the system cannot tell one start from another, this is the machine's own
    clock.

    :param boot_id: identifies the machine's start, and the clock that counts from it; None means that it is not known.
    :param elapsed: seconds since that start.
    :param wall: the machine's clock, seconds since the epoch.
    """

    def __init__(
        self,
        boot_id: str | None,
        elapsed: Callable[[], float] = elapsed_here,
        wall: Callable[[], float] | None = None,
    ) -> None:
        self._boot_id = boot_id
        self._elapsed = elapsed
        self._wall = wall or time.time
        self._ahead: float | None = None

    def __call__(self) -> float:
        """Return what time it is."""
        return self._wall() if self._ahead is None else self._elapsed() + self._ahead

    def read(self, connection: Connection) -> None:
        """Read how far the machine's start is from the epoch."""
        if self._boot_id is not None:
            query = "SELECT ahead FROM sms_boot_clock WHERE boot_id = ?"
            self._ahead = connection.exec_driver_sql(query, (self._boot_id,)).scalar()

    def set(self, connection: Connection) -> None:
        """Record how far the machine's start is from the epoch, within a transaction that writes.

        That is done once, and again if the machine's clock was set since, no claim is open, and no request of the last
        day is unknown: no deadline may move while the claiming process may live, or while others wait for the outcome.
        """
        self.read(connection)
        if self._boot_id is None:
            return
        this_start = boot_clock.c.boot_id == self._boot_id
        ahead = self._wall() - self._elapsed()
        if self._ahead is None:
            connection.execute(insert(boot_clock).values(boot_id=self._boot_id, ahead=ahead))
        elif abs(ahead - self._ahead) > SLACK_SECONDS:
            now = self()
            lapse(connection, true(), now)
            is_lost = and_(request.c.state == UNKNOWN, request.c.claimed_at > now - HOLD_SECONDS)
            if connection.execute(select(exists().where(or_(request.c.state == CLAIMED, is_lost)))).scalar():
                return
            connection.execute(update(boot_clock).where(this_start).values(ahead=ahead))
        else:
            return
        self._ahead = ahead


def this_boot() -> str | None:
    """Return an id of this start of this machine; None where the system has none.

    Containers of one machine share both the start and the clock, unless they have a time namespace of their own.
    """
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    try:
        return f"{boot} {Path('/proc/self/ns/time').readlink()}"
    except OSError:
        # A kernel without time namespaces.
        return boot
