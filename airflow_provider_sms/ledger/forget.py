"""Forgetting one person: their number goes out of the ledger, and the claims on their messages stay.

What keeps a message from going out twice is its key, a digest of 16 bytes. So each message stays with the request that
holds it, under its key, and only its number is replaced by one that nobody has.

A response of the service may hold the number in any field and any spelling, and a text that may be anybody's. So only
counts are kept of every response that quotes the number, or whose request had a message to it or no longer tells whom
its messages were for. A response that cannot be read is deleted.

Transactions are short, like those of a purge. What an interrupted run has left is found again: the numbers of a
campaign's messages, which lead to the rest, go last. A request that is under way may bring the number back with its
response. So every look reads the requests with a message to a forgotten person again.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, func, or_, select, update

from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.locks import campaign_lock, progress_lock
from airflow_provider_sms.ledger.model import CLAIMED, FORGOTTEN_NUMBER, UNKNOWN
from airflow_provider_sms.ledger.schema import (
    campaign,
    claimant,
    former_holder,
    message,
    progress,
    request,
)
from airflow_provider_sms.ledger.transitions import state_at, under_way
from airflow_provider_sms.masking import STARS, mask_number, mask_numbers_in
from airflow_provider_sms.service.redaction import FAULT_KEYS, counts_of_response
from airflow_provider_sms.service.responses import faulted_number

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.backend import LedgerBackend

FORGOTTEN = "forgotten"
"""Stands where a number stood, in the words and the responses of the service."""

REQUESTS_AT_ONCE = 100
"""Requests whose responses one transaction rewrites: a send of the campaign waits for a fraction of a second."""

_MASKED = re.compile(rf"\d*{re.escape(STARS)}\d*")
_KEY = re.compile("[0-9a-f]{32}")
_BETWEEN_DIGITS = r"[\W_]{0,3}"
_COUNTRY_CODES = (1, 2, 3)
"""How many digits a country code has; a number written nationally has a zero in their place."""


class NumberCounts(NamedTuple):
    """How many rows of the ledger hold a number, or have lost it.

    :param messages: messages to it.
    :param responses: responses of the service that name it, or hold a text that may be the person's.
    :param reasons: requests whose reason quotes it.
    :param figures: attempts whose figures quote it.
    """

    messages: int
    responses: int
    reasons: int
    figures: int


class NumberTraces(NamedTuple):
    """What a ledger holds of a number.

    :param keys: the keys of the messages to it, by the name of their campaign.
    :param requests: the requests whose response or reason has to change, by the name of their campaign.
    :param attempts: the claimants whose figures have to change.
    :param open_requests: requests with a message to it that are unknown or may be under way.
    :param under_way: requests with a message to it, or to a number forgotten before, that may be under way.
    :param names: campaigns and runs with the number in their name, which stays.
    """

    counts: NumberCounts
    keys: Mapping[str, Sequence[bytes]]
    requests: Mapping[str, Sequence[int]]
    attempts: Sequence[int]
    open_requests: int
    under_way: int
    names: int


def find_number(store: LedgerBackend, digits: str) -> NumberTraces:
    """Return what the ledger holds of a number. Reads every message of the ledger, and the words of every request.

    :param digits: with country code.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        keys, theirs, linked = _messages_to(connection, int(digits))
        # Before the responses: one that is recorded after this count makes the look incomplete, and it says so.
        open_requests = _count(connection, theirs, state_at(store.clock()).in_((CLAIMED, UNKNOWN)))
        may_respond = _count(connection, linked, under_way(store.clock()))
        words = _Words(digits)
        requests: defaultdict[str, list[int]] = defaultdict(list)
        responses = reasons = 0
        for number, name, response, reason, is_theirs in _candidates(connection, words, linked):
            changed = [
                response is not None and words.out_of_response(response, theirs=is_theirs) != response,
                reason is not None and words.out_of(reason, theirs=is_theirs) != reason,
            ]
            if any(changed):
                requests[name].append(number)
            responses += changed[0]
            reasons += changed[1]
        figures = connection.execute(
            select(progress.c.claimant_id, progress.c.figures).where(progress.c.figures.like(words.pattern))
        )
        attempts = [number for number, text in figures if words.out_of(text) != text]
        names = sum(_count_names(connection, words, name) for name in (campaign.c.name, claimant.c.run_id))
    messages = sum(map(len, keys.values()))
    counts = NumberCounts(messages, responses, reasons, len(attempts))
    return NumberTraces(counts, keys, requests, attempts, open_requests, may_respond, names)


def forget_number(store: LedgerBackend, digits: str, traces: NumberTraces) -> NumberCounts:
    """Take a number out of the ledger. What was claimed since it was looked for is not touched.

    :param digits: with country code.
    :param traces: what the ledger holds of it.
    :returns: how many rows have lost it.
    :raises LedgerError: when it was not committed; call :func:`find_number` and this again.
    """
    words, number = _Words(digits), int(digits)
    for claimant_id in traces.attempts:
        with store.write(progress_lock(claimant_id)) as connection:
            this = progress.c.claimant_id == claimant_id
            figures = connection.execute(select(progress.c.figures).where(this)).scalar()
            if figures is not None:
                connection.execute(update(progress).where(this).values(figures=words.out_of(figures)))
    messages = responses = reasons = 0
    for name in sorted({*traces.keys, *traces.requests}):
        for piece in in_pieces(traces.requests.get(name, ()), REQUESTS_AT_ONCE):
            with store.write(campaign_lock(name)) as connection:
                for request_id in piece:
                    changed = _forget_words(connection, request_id, words, number)
                    responses += changed[0]
                    reasons += changed[1]
        for keys in in_pieces(traces.keys.get(name, ()), REQUESTS_AT_ONCE):
            with store.write(campaign_lock(name)) as connection:
                of_campaign = select(campaign.c.id).where(campaign.c.name == name).scalar_subquery()
                this = and_(message.c.campaign_id == of_campaign, message.c.message_key.in_(keys))
                forgotten = update(message).where(this, message.c.destination == number)
                messages += connection.execute(forgotten.values(destination=FORGOTTEN_NUMBER)).rowcount
    return NumberCounts(messages, responses, reasons, len(traces.attempts))


def _messages_to(connection: Connection, number: int) -> tuple[dict[str, list[bytes]], set[int], set[int]]:
    """Return the messages to a number, and the requests that hold them or held them before.

    :returns: their keys by campaign, their requests, and these plus the requests of messages to forgotten people.
    """
    found: defaultdict[str, list[bytes]] = defaultdict(list)
    theirs: set[int] = set()
    linked: set[int] = set()
    columns = (message.c.campaign_id, message.c.message_key, message.c.request_id, message.c.destination)
    rows = connection.execute(
        select(campaign.c.name, *columns)
        .select_from(message.join(campaign, campaign.c.id == message.c.campaign_id))
        .where(message.c.destination.in_((number, FORGOTTEN_NUMBER)))
    ).all()
    for name, campaign_id, key, request_id, destination in rows:
        this = and_(former_holder.c.campaign_id == campaign_id, former_holder.c.message_key == bytes(key))
        holders = {request_id, *connection.execute(select(former_holder.c.request_id).where(this)).scalars()}
        linked |= holders
        if destination == number:
            found[name].append(bytes(key))
            theirs |= holders
    return found, theirs, linked


def _count(connection: Connection, ids: Collection[int], condition: ColumnElement[bool]) -> int:
    """Count those of some requests that meet a condition."""
    query = select(func.count()).select_from(request).where(condition)
    pieces = in_pieces(sorted(ids))
    return sum(connection.execute(query.where(request.c.id.in_(piece))).scalar_one() for piece in pieces)


def _candidates(
    connection: Connection, words: _Words, linked: Collection[int]
) -> Iterator[tuple[int, str, str | None, str | None, bool]]:
    """Yield the requests whose words may be about a number.

    :param linked: the requests that had a message to the number, or to a forgotten person.
    :returns: id, campaign, response and reason of each, and whether it may have had a message to the number.
    """
    columns = (request.c.id, campaign.c.name, request.c.response, request.c.reason)
    query = select(*columns).select_from(request.join(campaign))
    for piece in in_pieces(sorted(linked)):
        for row in connection.execute(query.where(request.c.id.in_(piece))).all():
            yield (*row, True)
    texts = (request.c.response, request.c.reason)
    unlinked = or_(
        *(text.like(words.pattern) for text in texts),
        and_(
            _has_lost_messages(),
            or_(
                *(t.like(f"%{each}%") for t in texts for each in words.masked),
                func.lower(request.c.response).like('%"sample"%'),
            ),
        ),
    )
    streaming = connection.execution_options(yield_per=REQUESTS_AT_ONCE)
    with closing(streaming.execute(query.add_columns(_has_lost_messages()).where(unlinked))) as rows:
        for number, name, response, reason, has_lost in rows:
            if number not in linked:
                yield number, name, response, reason, bool(has_lost)


def _has_lost_messages() -> ColumnElement[bool]:
    """Return the condition for requests of which the ledger no longer has every message: they were not sent."""
    held = select(func.count()).select_from(message).where(message.c.request_id == request.c.id)
    former = select(func.count()).select_from(former_holder).where(former_holder.c.request_id == request.c.id)
    has_lost: ColumnElement[bool] = request.c.submitted > held.scalar_subquery() + former.scalar_subquery()
    return has_lost


def _forget_words(connection: Connection, request_id: int, words: _Words, number: int) -> tuple[bool, bool]:
    """Take a number out of a request's response and reason, and return whether each of them has changed."""
    this = request.c.id == request_id
    row = connection.execute(select(request.c.response, request.c.reason).where(this)).first()
    if row is None:  # its campaign was purged meanwhile
        return False, False
    rows = connection.execute(
        select(message.c.message_key, message.c.destination).where(message.c.request_id == request_id)
    )
    # A forgotten message may have been to this number, too: its response can come after the number was forgotten.
    keys = {destination or number: bytes(key).hex() for key, destination in rows if destination is not None}
    response = None if row.response is None else words.out_of_response(row.response, theirs=True, keys=keys)
    reason = None if row.reason is None else words.out_of(row.reason, theirs=True)
    connection.execute(update(request).where(this).values(response=response, reason=reason))
    return response != row.response, reason != row.reason


def _count_names(connection: Connection, words: _Words, name: ColumnElement[str]) -> int:
    names = connection.execute(select(name).where(name.like(words.pattern)).distinct()).scalars()
    return sum(words.out_of(each) != each for each in names)


class _Words:
    """Takes a number out of words.

    :param digits: with country code.
    """

    def __init__(self, digits: str) -> None:
        national = [f"0{digits[length:]}" for length in _COUNTRY_CODES]
        self.masked = tuple(mask_number(each) for each in (digits, *national))
        self.pattern = f"%{'%'.join(digits)}%"
        """For ``LIKE``: texts with these digits in this order, whatever stands between them."""
        self._digits = digits
        self._written = _pattern_of([digits])
        self._written_anyhow = _pattern_of([digits, *national])

    def out_of(self, text: str, *, theirs: bool = False) -> str:
        """Return a text without the number.

        :param theirs: whether the text may be about the person: then it loses every number, since the service may have
            written theirs nationally, masked or encoded.
        """
        if not theirs:
            return self._written.sub(FORGOTTEN, text)
        return _MASKED.sub(FORGOTTEN, mask_numbers_in(self._written_anyhow.sub(FORGOTTEN, text)))

    def out_of_response(self, body: str, *, theirs: bool, keys: Mapping[int, str] | None = None) -> str | None:
        """Return the counts of a response; all of it where it is not about the person; None where it cannot be read.

        Which message each fault is about stays known by its key, as in a redacted response: the row report of the other
        recipients needs that.

        :param body: as the ledger keeps it, JSON.
        :param theirs: whether the request may have had a message to the number.
        :param keys: the message keys of the request by number, in hex; None where they are not needed.
        """
        if not theirs and self.out_of(body) == body:
            return body
        try:
            return json.dumps(self._counts_of(json.loads(body), keys or {}))
        except (ArithmeticError, AttributeError, TypeError, ValueError, RecursionError):
            return None  # The service decides what it answers: none of it may keep the number in the ledger.

    def _counts_of(self, response: dict[str, Any], keys: Mapping[int, str]) -> dict[str, Any]:
        fields = _field(response, "sendresponse", dict) or response
        unwrapped = {key: value for key, value in fields.items() if key.lower() not in ("sendresponse", FAULT_KEYS)}
        counts = json.dumps(counts_of_response(unwrapped))
        # The hook is called for each object, and the values of counts are objects, lists of them, or plain.
        kept: dict[str, Any] = json.loads(counts, object_pairs_hook=self._out_of_pairs)
        faults = _field(_field(fields, "errorreport", dict) or {}, "faults", list) or []
        about = response.get(FAULT_KEYS)
        # A raw response has no such field of the ledger's, but may have one of the service's.
        if not (isinstance(about, list) and len(about) == len(faults) and all(map(self._is_key, about))):
            about = [keys.get(faulted_number(fault) or 0) if isinstance(fault, dict) else None for fault in faults]
        return {**kept, FAULT_KEYS: about} if faults else kept

    def _out_of_pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {self.out_of(key, theirs=True): self._out_of_value(key, value) for key, value in pairs}

    def _out_of_value(self, key: str, value: Any) -> Any:
        if key.lower() == "eventid":  # It is no phone number, even where it has the digits of one.
            return value
        if isinstance(value, str):
            return self.out_of(value, theirs=True)
        return FORGOTTEN if isinstance(value, (int, float)) and abs(value) == int(self._digits) else value

    def _is_key(self, value: Any) -> bool:
        """Return whether a value may be the key of a message in hex, or None, as the ledger writes it."""
        return value is None or (isinstance(value, str) and bool(_KEY.fullmatch(value)) and self._digits not in value)


def _pattern_of(numbers: Sequence[str]) -> re.Pattern[str]:
    written = "|".join(_BETWEEN_DIGITS.join(number) for number in numbers)
    return re.compile(rf"(?<!\d)(?:\+|00)?(?:{written})(?!\d)")


def _field(fields: dict[str, Any], name: str, kind: type[Any]) -> Any:
    return next((value for key, value in fields.items() if key.lower() == name and isinstance(value, kind)), None)
