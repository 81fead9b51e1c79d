"""The status of the messages of a request, read from the request's record in the ledger.

A response counts the messages that the service took and does not list them: all messages of a request that was accepted
in part are accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, SUPERSEDED, UNKNOWN
from airflow_provider_sms.masking import mask_numbers_in

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.request_queries import RequestRow

ALREADY_SENT = "already_sent"
DUPLICATE = "duplicate"
INVALID = "invalid"
SUPPRESSED = "suppressed"

OPEN_HERE = "posted or about to be, and no outcome was recorded"
OPEN_ELSEWHERE = "another process claimed it, and has not recorded an outcome yet"

LONGEST_REASON = 300
"""Characters of a reason, which is repeated in each of its rows."""


class RowStatus(NamedTuple):
    """The status of a row, as the report shows it.

    :param event_id: 64 bits.
    :param sent_at: microseconds since the epoch: when the outcome of an accepted request was recorded, or when an
        unknown one was claimed.
    """

    status: str
    reason: str | None = None
    request_id: int | None = None
    event_id: int | None = None
    sent_at: int | None = None


def short(text: str | None) -> str | None:
    """Return a text as a reason: numbers masked, and not too long; None for none."""
    return mask_numbers_in(text)[:LONGEST_REASON] if text else None


def status_of(record: RequestRow) -> RowStatus:
    """Return the status of the messages that a request holds."""
    # Not masked again: its figures are this package's own, such as an HTTP status beside the service's code.
    reason = record.reason[:LONGEST_REASON] if record.reason else None
    unknown = RowStatus(UNKNOWN, reason, record.request_id, record.event_id, _microseconds(record.claimed_at))
    if record.state == ACCEPTED:
        told = reason if _is_closed_by_balance(record) else None
        if record.taken is not None and record.taken < record.submitted:
            unit = by_count(record.submitted, "message")
            told = f"the service took {record.taken} of the request's {record.submitted} {unit}, and does not say which"
        status = ACCEPTED if record.mine else ALREADY_SENT
        return unknown._replace(status=status, reason=told, sent_at=_microseconds(record.finished_at))
    if record.state in (NOT_SENT, SUPERSEDED):
        # Released between the look-up of its messages and that of its record.
        return unknown._replace(status=NOT_SENT, sent_at=None)
    if record.state == CLAIMED:
        return unknown._replace(reason=OPEN_HERE if record.mine else OPEN_ELSEWHERE)
    return unknown


def _is_closed_by_balance(record: RequestRow) -> bool:
    """Return whether the balance told what became of a request: its words are the reason then."""
    return record.evidence is not None and record.reason == record.evidence.words


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000_000)
