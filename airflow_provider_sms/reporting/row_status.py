"""The status of each message of a request, read from the request's record in the ledger.

A response counts the messages that the service took and does not list them. The faults in its error report name
numbers, and so tell which messages were left out, where they account for all of those.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sms.exceptions import SmsError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, FORGOTTEN_NUMBER, NOT_SENT, UNKNOWN
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.service.redaction import FAULT_KEYS
from airflow_provider_sms.service.responses import faulted_number, parse_send_response

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_provider_sms.ledger.request_queries import RequestRow

ALREADY_SENT = "already_sent"
DUPLICATE = "duplicate"
INVALID = "invalid"
SUPPRESSED = "suppressed"
PARTIAL = "partial"
"""The service took some of the request's messages, and nobody knows whether this is one of them."""

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


class RequestStatuses:
    """The statuses of one request's messages.

    :param record: of the request, in the ledger.
    """

    def __init__(self, record: RequestRow) -> None:
        self.mine = record.mine
        self._default = _status(record)
        self._named: dict[int, RowStatus] = {}
        self._numbers = frozenset(record.destinations.values())
        if record.state == ACCEPTED and record.taken is not None and record.taken < record.submitted:
            self._default, self._named = _statuses_in_part(record, self._default)

    def of(self, destination: str) -> RowStatus:
        """Return the status of the message to a destination: digits with country code."""
        if not self._named:
            return self._default
        # The request holds a message to it, so where the ledger does not have the number, it has forgotten it.
        number = int(destination) if int(destination) in self._numbers else FORGOTTEN_NUMBER
        return self._named.get(number, self._default)


def short(text: str | None) -> str | None:
    """Return a text as a reason: numbers masked, and not too long; None for none."""
    return mask_numbers_in(text)[:LONGEST_REASON] if text else None


def _status(record: RequestRow) -> RowStatus:
    # Not masked again: its figures are this package's own, such as an HTTP status beside the service's code.
    reason = record.reason[:LONGEST_REASON] if record.reason else None
    unknown = RowStatus(UNKNOWN, reason, record.request_id, record.event_id, _microseconds(record.claimed_at))
    if record.state == ACCEPTED:
        status = ACCEPTED if record.mine else ALREADY_SENT
        told = reason if _is_closed_by_balance(record) else None
        return unknown._replace(status=status, reason=told, sent_at=_microseconds(record.finished_at))
    if record.state == NOT_SENT:
        # Released between the look-up of its messages and that of its record.
        return unknown._replace(status=NOT_SENT, sent_at=None)
    if record.state == CLAIMED:
        return unknown._replace(reason=OPEN_HERE if record.mine else OPEN_ELSEWHERE)
    return unknown


def _is_closed_by_balance(record: RequestRow) -> bool:
    """Return whether the balance told what became of a request: its words are the reason then."""
    return record.evidence is not None and record.reason == record.evidence.words


def _statuses_in_part(record: RequestRow, whole: RowStatus) -> tuple[RowStatus, dict[int, RowStatus]]:
    """Separate the messages that the service took from those that it left out, as far as its faults name the latter.

    :param whole: the status of a message that was taken.
    :returns: the status of most messages, and that of the others by destination.
    """
    taken, missing = record.taken or 0, record.submitted - (record.taken or 0)
    unit = by_count(record.submitted, "message")
    some = f"the service took {taken} of the request's {record.submitted} {unit}, and does not say which"
    none = f"the service took none of the request's {record.submitted} {unit}"
    partial = RowStatus(PARTIAL, some, record.request_id, record.event_id)
    left_out = partial._replace(status=NOT_SENT, reason=none)
    words = "the service found fault with it" if taken else none
    named: dict[int, RowStatus] = {}
    faulty = 0
    faults, texts = _faults(record)
    # A fault names a number; more than one message of the request can be for it.
    for destination, messages in Counter(record.destinations.values()).items():
        if destination is not None and (times := min(faults[destination], messages)):
            faulty += times
            surely = times == messages or not taken
            named[destination] = left_out._replace(reason=texts[destination] or words) if surely else partial
    if taken and faulty > missing:
        # The service took messages that it calls faulty.
        named.clear()
    default = left_out if not taken else whole if faulty == missing else partial
    if record.mine:
        return default, named
    # Claimed by another attempt, they count as sent already here: they are not sent again.
    return _already(default, whole), {destination: _already(status, whole) for destination, status in named.items()}


def _already(status: RowStatus, whole: RowStatus) -> RowStatus:
    return whole._replace(reason=status.reason, sent_at=status.sent_at)


def _faults(record: RequestRow) -> tuple[Counter[int], dict[int, str | None]]:
    """Count the faults for each number that they are about, and return them with the service's words."""
    counts: Counter[int] = Counter()
    texts: dict[int, str | None] = {}
    for fault, destination in _fault_destinations(record):
        if destination is not None:
            fields = {key.lower(): value for key, value in fault.items()}
            counts[destination] += 1
            text = fields.get("errormessage") or fields.get("status")
            texts.setdefault(destination, short(str(text)) if text else None)
    return counts, texts


def _fault_destinations(record: RequestRow) -> Iterator[tuple[Mapping[str, Any], int | None]]:
    """Yield each fault with the number that it is about: in a redacted response the ledger's message tells it."""
    try:
        response = parse_send_response((record.response or "").encode())
    except SmsError:
        return
    faults, keys = response.error_report.faults, response.raw.get(FAULT_KEYS)
    if isinstance(keys, list):
        destinations = {key.hex(): destination for key, destination in record.destinations.items()}
        yield from ((fault, destinations.get(str(key))) for fault, key in zip(faults, keys, strict=False))
    else:
        yield from ((fault, faulted_number(fault)) for fault in faults)


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000_000)
