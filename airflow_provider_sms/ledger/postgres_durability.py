"""Whether a server keeps what it has committed, through a crash of its machine and through a failover."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import text

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.formatting import by_count

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

log = logging.getLogger(__name__)

# A logical subscriber and a backup are no standbys: nobody fails over to them.
_SERVER = text(
    "SELECT current_setting('fsync') = 'on', current_setting('transaction_read_only') = 'on', "
    "current_setting('synchronous_standby_names') <> '', count(its.pid), "
    "count(its.pid) FILTER (WHERE its.state IS NULL), "
    "count(its.pid) FILTER (WHERE its.sync_state IN ('sync', 'quorum')) "
    "FROM (VALUES (1)) AS server LEFT JOIN pg_stat_replication AS its ON its.state IS DISTINCT FROM 'backup' "
    "AND its.pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE slot_type = 'logical' "
    "AND active_pid IS NOT NULL)"
)
_WAITS_FOR_STANDBY = text("SELECT current_setting('synchronous_standby_names') <> ''")

_REMEDY = (
    "On the server, set synchronous_standby_names (Patroni: synchronous_mode and synchronous_mode_strict; "
    "CloudNativePG: spec.postgresql.synchronous)"
)


class Server(NamedTuple):
    """The durability settings of a server.

    :param waits: whether a commit waits for a standby, by ``synchronous_standby_names``.
    :param standbys: how many standbys are attached.
    :param hidden: how many of them have a state that this user may not see.
    :param synchronous: how many of them commits are seen to wait for.
    """

    fsync: bool
    read_only: bool
    waits: bool
    standbys: int
    hidden: int
    synchronous: int


def read_server(connection: Connection) -> Server:
    """Read the durability settings of a server."""
    return Server(*connection.execute(_SERVER).one())


def check_server(server: Server, described: str, *, require_standby: bool) -> None:
    """Refuse a server that would lose commits, and warn of one that may.

    :param described: which database it is.
    :param require_standby: whether a server without a synchronous standby is refused, too.
    """
    if server.read_only:
        raise LedgerError(
            f"{described} is read-only for this user (default_transaction_read_only), so no claim can be written. "
            "Nothing was sent"
        )
    if not server.fsync:
        raise LedgerError(
            f"{described} runs with fsync = off: when its machine fails, it forgets who was texted, and they are "
            "texted again. Nothing was sent. Set fsync = on"
        )
    if require_standby and (lack := _lack(server)) is not None:
        what, remedy = lack
        raise LedgerError(
            f"{described} {what}, and [sms] require_synchronous_standby is set. Nothing was sent. {remedy}"
        )
    if server.standbys and not server.waits:
        log.warning(
            "%s has %d standby %s: after a failover the last claims are missing, and "
            "people are texted twice. %s. [sms] require_synchronous_standby = True refuses such a server",
            described,
            server.standbys,
            by_count(server.standbys, "server and does not wait for it", "servers and waits for none of them"),
            _REMEDY,
        )


def _lack(server: Server) -> tuple[str, str] | None:
    """Return why a commit would not be on a standby, and what to do about it; None means that it would be."""
    if not server.waits:
        return "waits for no standby (synchronous_standby_names is empty)", _REMEDY
    if not server.standbys:
        return "has no standby attached", "Bring the standby back"
    if server.hidden == server.standbys:
        return "does not show this user the state of its standbys", "GRANT pg_monitor to the user of the connection"
    if not server.synchronous:
        return "has no synchronous standby attached", "See sync_state in pg_stat_replication"
    return None


def require_waiting(connection: Connection, described: str) -> None:
    """Refuse to write in a transaction whose commit would wait for no standby."""
    if not connection.execute(_WAITS_FOR_STANDBY).scalar():
        raise LedgerError(
            f"{described} no longer waits for a standby: synchronous_standby_names is empty, and [sms] "
            f"require_synchronous_standby is set. Nothing more is sent. {_REMEDY}"
        )
