"""The ledger's tables: a contract with every ledger already on disk.

A change here needs a new ``SCHEMA_VERSION`` and a migration in :mod:`~airflow_provider_sms.ledger.open`. Times are
seconds since the epoch, UTC. Costs are decimal numbers as text, since SQLite has no decimal type and money is not
rounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    and_,
)

if TYPE_CHECKING:
    from sqlalchemy.sql.elements import ColumnElement
    from sqlalchemy.sql.expression import FromClause

SCHEMA_VERSION = 1

# SQLite numbers rows only where the key's type is exactly INTEGER.
_Id = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData()

version = Table(
    "sms_version",
    metadata,
    Column("version", Integer, nullable=False),
)

campaign = Table(
    "sms_campaign",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("name", String(1000), nullable=False, unique=True),
    Column("created_at", Float(53), nullable=False),
    # The last pause, if there was any; it holds until it is resumed.
    Column("paused_by", String(250)),
    Column("paused_at", Float(53)),
    Column("resumed_by", String(250)),
    Column("resumed_at", Float(53)),
)

# One process of an attempt: each wait without a slot ends one, and another one goes on. Also adoptions, see ADOPTION.
attempt = Table(
    "sms_attempt",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("dag_id", String(250), nullable=False),
    Column("task_id", String(250), nullable=False),
    Column("run_id", String(250), nullable=False),
    Column("map_index", Integer, nullable=False),
    Column("try_number", Integer, nullable=False),
    Column("host", String(255), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started_at", Float(53), nullable=False),
    # None until it has entered one.
    Column("campaign_id", ForeignKey("sms_campaign.id")),
    # The connection that it sends with.
    Column("conn_id", String(250)),
    # An AttemptState, as it reported last.
    Column("state", String(30), nullable=False),
    Column("updated_at", Float(53), nullable=False),
    # Rows that can be texted, and those that need nothing more; None until they are counted.
    Column("total", BigInteger),
    Column("done", BigInteger),
    Column("not_sent", BigInteger),
    Column("invalid", BigInteger),
    # Messages a second.
    Column("rate", Float(53)),
    # JSON: further figures of its state; at its end, its summary.
    Column("figures", Text),
    # JSON: its plan.
    Column("plan", Text),
    # The page of a task finds the attempts of its run.
    Index("sms_attempt_run", "dag_id", "run_id"),
    Index("sms_attempt_campaign", "campaign_id"),
)

request = Table(
    "sms_request",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("campaign_id", ForeignKey("sms_campaign.id"), nullable=False),
    Column("attempt_id", ForeignKey("sms_attempt.id"), nullable=False),
    Column("kind", String(10), nullable=False),
    Column("state", String(10), nullable=False),
    Column("submitted", Integer, nullable=False),
    Column("claimed_at", Float(53), nullable=False),
    Column("deadline", Float(53), nullable=False),
    Column("finished_at", Float(53)),
    Column("http_status", Integer),
    Column("event_id", BigInteger),
    Column("messages", Integer),
    Column("parts", Integer),
    Column("cost", String(40)),
    Column("reason", Text),
    Column("response", Text),
    # The account that it is sent with; None where it is not known.
    Column("account", String(32)),
    # SMS parts of the messages that were claimed; None for a group.
    Column("planned_parts", Integer),
    # Credits that they are expected to cost; for a group, one part.
    Column("planned_cost", String(40)),
    # JSON: what the balance tells of it where its response was lost.
    Column("evidence", Text),
    # What a person or the balance said that became of it: accepted or not_sent. A late response may know better.
    Column("decision", String(10)),
    Column("decided_by", String(250)),
    Column("decided_at", Float(53)),
    Index("sms_request_campaign_state", "campaign_id", "state"),
    # Each response's event id is looked up: one that the campaign has already does not prove a new request.
    Index("sms_request_campaign_event", "campaign_id", "event_id"),
    # A retry finds what earlier attempts of its task claimed, without reading every request.
    Index("sms_request_attempt", "attempt_id"),
    # The balance of an account is judged by the requests of any campaign around a lost one.
    Index("sms_request_account", "account", "claimed_at"),
)

message = Table(
    "sms_message",
    metadata,
    Column("campaign_id", _Id, primary_key=True),
    Column("message_key", LargeBinary(16), primary_key=True),
    # Digits of E.164 as a number: 15 digits fit, and none begins with 0. None for the message to a group; 0
    # where the person was forgotten.
    Column("destination", BigInteger),
    # The request that holds it. No foreign key: a server would look up each one, at a third of a claim's whole cost.
    Column("request_id", _Id, nullable=False),
    # A request's messages are released together when it was not sent.
    Index("sms_message_request", "request_id"),
    sqlite_with_rowid=False,
)

# Messages that a request held before it was superseded, or before somebody said that it was not sent: their people may
# be texted again, and may have had this text.
superseded = Table(
    "sms_superseded",
    metadata,
    Column("campaign_id", _Id, primary_key=True),
    Column("message_key", LargeBinary(16), primary_key=True),
    Column("request_id", _Id, primary_key=True),
    Column("destination", BigInteger),
    Index("sms_superseded_request", "request_id"),
    sqlite_with_rowid=False,
)


balance = Table(
    "sms_balance",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("account", String(32), nullable=False),
    # The balance was read between these two moments.
    Column("asked_at", Float(53), nullable=False),
    Column("read_at", Float(53), nullable=False),
    # Credits; None where the account is post-paid.
    Column("amount", String(40)),
    Index("sms_balance_account", "account", "read_at"),
)


def same_message(one: FromClause, other: FromClause) -> ColumnElement[bool]:
    """Return the condition for rows of two tables that are about the same message."""
    return and_(one.c.campaign_id == other.c.campaign_id, one.c.message_key == other.c.message_key)
