"""What time it is for a ledger: the same for all who share it, even where somebody sets a machine's clock.

Others call a claim unknown once its deadline has passed, and may send its messages again. A clock that is set between
the claim and that decision would end claims of processes that live. So no deadline is compared with a clock that can be
set on the machine of the sender: a server's ledger goes by the server's clock, a file's by the time since the machine's
start.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import exists, insert, select, text, true, update

from airflow_provider_sms.ledger.model import CLAIMED
from airflow_provider_sms.ledger.schema import boot_clock, request
from airflow_provider_sms.ledger.transitions import lapse
from airflow_provider_sms.service.elapsed import elapsed as elapsed_here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import TextClause

PROMPT_SECONDS = 1.0
"""An answer that took longer says too little of what time it is now; well below what a claim has to spare."""

SLACK_SECONDS = 1.0
"""By how much a file's time may differ from the machine's clock before it is set anew."""

_NOW = text("SELECT extract(epoch FROM clock_timestamp())")


class ServerClock:
    """Seconds since the epoch as the server last said, and what has elapsed here since.

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

        :param statement: gives the time as the last thing that it does, in seconds since the epoch.
        :param values: the statement's.
        """
        asked = self._elapsed()
        server = connection.execute(statement, values or {}).scalar_one()
        if self._elapsed() - asked > PROMPT_SECONDS:
            # It waited for a lock, or this machine slept, and then the answer may be old.
            server = connection.execute(_NOW).scalar_one()
        self._ahead = float(server) - self._elapsed()


class BootClock:
    """Seconds since the epoch, by the time since the machine's start, for a ledger in a file.

    How far that is from the epoch is kept in the ledger, so that a process that began before the machine's clock was
    set agrees with one that began after it. Where the system does not tell one start from another, it is the machine's
    own clock.

    :param boot_id: of the machine's start, and of the clock that counts from it; None: the system does not tell.
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
        """Look up how far the machine's start is from the epoch."""
        if self._boot_id is not None:
            query = "SELECT ahead FROM sms_boot_clock WHERE boot_id = ?"
            self._ahead = connection.exec_driver_sql(query, (self._boot_id,)).scalar()

    def set(self, connection: Connection) -> None:
        """Note how far the machine's start is from the epoch, within a transaction that writes.

        That is done once, and again where the machine's clock was set since and nobody holds a claim: a deadline must
        not move while the process that it is for may live.
        """
        self.read(connection)
        if self._boot_id is None:
            return
        its = boot_clock.c.boot_id == self._boot_id
        ahead = self._wall() - self._elapsed()
        if self._ahead is None:
            connection.execute(insert(boot_clock).values(boot_id=self._boot_id, ahead=ahead))
        elif abs(ahead - self._ahead) > SLACK_SECONDS:
            lapse(connection, true(), self())
            if connection.execute(select(exists().where(request.c.state == CLAIMED))).scalar():
                return
            connection.execute(update(boot_clock).where(its).values(ahead=ahead))
        else:
            return
        self._ahead = ahead


def this_boot() -> str | None:
    """Return what tells this start of this machine from others; None where the system does not tell.

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
