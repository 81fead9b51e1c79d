"""What becomes of a ledger that an older version of this package made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, insert, literal, select

from airflow_provider_sms.ledger.schema import former_holder, message, progress, request

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

EARLIER = "earlier"
"""The state of a try that was made before tries noted how they go."""

_FIRST_WITH_NOTES = 4
_FIRST_WITH_EVENT_INDEX = 5


def bring_up_to_date(connection: Connection, version: int) -> None:
    """Fill the tables, and make the indexes, that an older version did not have, within the transaction that made them.

    :param version: that the ledger has had so far.
    """
    if version < _FIRST_WITH_NOTES:
        _note_earlier_tries(connection)
    if version < _FIRST_WITH_EVENT_INDEX:
        # create_all makes no index of a table that exists.
        for index in request.indexes:
            index.create(connection, checkfirst=True)
        held = select(message.c.campaign_id, message.c.message_key, message.c.taken_from)
        taken = held.where(message.c.taken_from.is_not(None))
        connection.execute(insert(former_holder).from_select([*former_holder.c.keys()], taken))


def _note_earlier_tries(connection: Connection) -> None:
    """Note of each try that made requests that it was there, and when it did something last."""
    # A try is of one campaign; were it of two, it would count as of the one of its last request.
    last = (
        select(
            request.c.claimant_id,
            func.max(request.c.id).label("request_id"),
            func.max(func.coalesce(request.c.finished_at, request.c.claimed_at)).label("at"),
        )
        .group_by(request.c.claimant_id)
        .subquery()
    )
    notes = select(request.c.claimant_id, request.c.campaign_id, literal(EARLIER), last.c.at).select_from(
        request.join(last, request.c.id == last.c.request_id)
    )
    connection.execute(insert(progress).from_select(["claimant_id", "campaign_id", "state", "updated_at"], notes))
