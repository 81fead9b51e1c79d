"""Recovery files: outcomes that the ledger did not take in time are kept in a small local file, and recorded later.

A file belongs to one attempt, or one leg of it, and is never changed: a newer one takes its place under another name.
So any process may remove a file that it has recorded, even while the writer still runs and has new outcomes.

Recording a file does what its attempt would have done, in its name. Outcomes that are recorded already stay as they
are, so a file may be recorded any number of times. The ledger must be the one that the attempt used, with all that was
committed to it: otherwise a number would stand for another request, of other people.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sms.atomic_file import remove_partial_files, whole_file
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.attempts import Origin, registered
from airflow_provider_sms.ledger.backend import KEY_BYTES, find_campaign
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.frequency_cap import FrequencyCap
from airflow_provider_sms.ledger.model import (
    ACCEPTED,
    CLAIMED,
    UNKNOWN,
    Chunk,
    Claimant,
    Outcome,
    RequestState,
)
from airflow_provider_sms.ledger.transitions import REPEATED_EVENT, repeated_events

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import TextedTwice

VERSION = 1
"""Version of the file's format. A later package may write a newer version, and still reads this one."""

_NAME = re.compile(r"sms-outcomes-[0-9a-f]{16}-[0-9a-f]{16}\.json")
_RANDOM_BYTES = 8
_MOST = 2**63 - 1
_NUMBERS = ("http_status", "event_id", "messages", "parts")
_TEXTS = ("cost", "reason", "response", "remaining_balance", "least_price", "most_price")


@dataclass(frozen=True, slots=True)
class UnrecordedOutcomes:
    """What an attempt knows of its requests and its ledger does not.

    :param origin: the attempt and its ledger.
    :param outcomes: outcomes of requests that are in the ledger.
    :param unposted: requests that were surely not posted; some may never have reached the ledger, since the commit that
        claimed them raised.
    """

    origin: Origin
    outcomes: Sequence[Outcome]
    unposted: Sequence[int] = ()


class Recorded(NamedTuple):
    """What the ledger has after a file was recorded.

    :param states: the states of the file's requests, by id.
    :param texted_twice: messages of requests that were accepted after others had claimed them.
    """

    states: dict[int, str]
    texted_twice: Sequence[TextedTwice]


def write_file(folder: Path, unrecorded: UnrecordedOutcomes) -> Path:
    """Write a new file, which only its owner may read, and return its path.

    :param folder: created where it is missing.
    :raises OSError: it cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    origin = json.dumps(asdict(unrecorded.origin), sort_keys=True)
    of_attempt = blake2b(origin.encode(), digest_size=8).hexdigest()
    path = folder / f"sms-outcomes-{of_attempt}-{secrets.token_hex(_RANDOM_BYTES)}.json"
    kept = {
        "version": VERSION,
        "origin": asdict(unrecorded.origin),
        "outcomes": [_outcome_as_json(each) for each in unrecorded.outcomes],
        "unposted": list(unrecorded.unposted),
    }
    with whole_file(path, overwrite=False) as file:
        file.write(json.dumps(kept, indent=1).encode())
    return path


def files_in(folder: Path) -> list[Path]:
    """Return the recovery files of a folder, whoever wrote them; none where there is no such folder."""
    try:
        return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))
    except OSError:
        return []


def remove_half_written(folder: Path) -> None:
    """Remove the half-written files of processes that were killed: they may hold numbers."""
    remove_partial_files(folder, _NAME.pattern)


def read_file(path: Path) -> UnrecordedOutcomes:
    """Read a file.

    :raises InputError: it cannot be read, is damaged, or is of a newer version; it is left as it is.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"The recovery file {path} cannot be read: {error.strerror}") from None
    try:
        kept = json.loads(content)
        version = kept["version"]
        unrecorded = _from_json(kept) if version == VERSION else None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        # Without the words of the error, which may quote a number.
        raise InputError(
            f"{path} is damaged, or is not a recovery file. None of it was recorded, and it stays where it is. The log "
            "of the task that wrote it names each request with its state and event id: close those that are unknown "
            "with airflow-sms ledger resolve"
        ) from None
    if unrecorded is None:
        raise InputError(
            f"The recovery file {path} has version {version}, and this airflow-provider-sms knows version {VERSION}. "
            "None of it was recorded. Upgrade airflow-provider-sms here"
        )
    return unrecorded


def record(store: LedgerBackend, unrecorded: UnrecordedOutcomes) -> Recorded:
    """Record outcomes in the name of the attempt that they belong to; those that are recorded already stay as they are.

    :raises InputError: the ledger does not have the attempt, its campaign or one of its requests; nothing is recorded.
    :raises LedgerError: when it was not committed.
    """
    origin, outcomes = unrecorded.origin, unrecorded.outcomes
    ids = [outcome.request_id for outcome in outcomes]
    _require_origin(store, origin, ids)
    ledger = CampaignLedger(
        store,
        origin.campaign,
        Claimant(**{name: origin.claimant[name] for name in Claimant.__slots__}),
        claimant_id=origin.claimant["id"],
        cap=origin.cap,
    )
    ledger.finish(_without_repeated_events(ledger, outcomes), unrecorded.unposted)
    recorded = {*ids, *unrecorded.unposted}
    if not recorded:
        return Recorded({}, ())
    with store.read() as connection:
        return Recorded(store.own_states(connection, origin.claimant, recorded), ledger.texted_twice)


def _require_origin(store: LedgerBackend, origin: Origin, wanted: Sequence[int]) -> None:
    """Refuse a ledger that is not the attempt's, or has lost or forgotten a part of what it had.

    :param wanted: the requests that it must have.
    :raises InputError: it is refused; the error says why.
    """
    missing = None
    states: dict[int, str] = {}
    if registered(store, origin.claimant["id"]) != origin.claimant:
        missing = "does not have the attempt that wrote them: it is another ledger, or has gone back, or forgot it"
    else:
        with store.read() as connection:
            if find_campaign(connection, origin.campaign) is None:
                missing = f"has no campaign {origin.campaign!r}: it was purged"
            elif wanted:
                states = store.own_states(connection, origin.claimant, wanted)
        if missing is None and (lost := sorted(set(wanted).difference(states))):
            missing = (
                f"does not have its request {lost[-1]}: it went back to an earlier state, or the campaign was purged"
            )
    if missing is not None:
        raise InputError(
            f"These outcomes are of {origin.ledger}, campaign {origin.campaign}, and {store.description} {missing}. "
            "Nothing of the file was recorded, and it stays where it is. Bring that ledger back and try again; if it "
            "is gone for good, delete the file"
        )


def _without_repeated_events(ledger: CampaignLedger, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return outcomes as far as they may be believed: a response with the event id of another request proves nothing.

    The sender checks each response against the ledger for this; here it could not.
    """
    events = {each.request_id: each.event_id for each in outcomes if each.event_id is not None}
    repeated = repeated_events(events) | ledger.known_events(events)
    return [
        Outcome(each.request_id, UNKNOWN, reason=REPEATED_EVENT) if each.request_id in repeated else each
        for each in outcomes
    ]


def _outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    kept = {each.name: getattr(outcome, each.name) for each in fields(Outcome) if each.name != "chunk"}
    chunk = outcome.chunk
    if chunk is None or outcome.state != ACCEPTED:
        return kept
    # Numbers are written for these alone: only a request that was accepted late takes its messages back.
    return {**kept, "keys": [key.hex() for key in chunk.keys], "destinations": list(chunk.destinations)}


def _from_json(kept: dict[str, Any]) -> UnrecordedOutcomes:
    """Return what a file holds.

    :raises ValueError: a value is not what it must be; also TypeError, KeyError, OverflowError.
    """
    outcomes = [_outcome(each) for each in kept["outcomes"]]
    return UnrecordedOutcomes(_origin(**kept["origin"]), outcomes, [_whole(each) for each in kept["unposted"]])


def _origin(ledger: Any, campaign: Any, claimant: Any, cap: Any) -> Origin:
    numbers = ("id", "map_index", "try_number", "pid")
    row: dict[str, Any] = {name: _whole(claimant[name]) for name in numbers}
    row |= {name: _text(claimant[name]) for name in ("dag_id", "task_id", "run_id", "host")}
    row["started_at"] = float(claimant["started_at"])
    known_cap = None if cap is None else FrequencyCap(_text(cap["group"]), float(cap["min_seconds"]))
    return Origin(_text(ledger), _text(campaign), row, known_cap)


def _outcome(kept: dict[str, Any]) -> Outcome:
    state = RequestState(kept["state"])
    if state == CLAIMED:
        raise ValueError("claimed is no outcome")
    chunk = None
    if "keys" in kept:
        keys = [bytes.fromhex(each) for each in kept["keys"]]
        destinations = [None if each is None else _digits(each) for each in kept["destinations"]]
        if len(keys) != len(destinations) or any(len(key) != KEY_BYTES for key in keys):
            raise ValueError("keys and destinations do not fit")
        chunk = Chunk(keys, destinations)
    values: dict[str, Any] = {name: None if kept[name] is None else _whole(kept[name]) for name in _NUMBERS}
    values |= {name: None if kept[name] is None else _text(kept[name]) for name in _TEXTS}
    return Outcome(request_id=_whole(kept["request_id"]), state=state, chunk=chunk, **values)


def _whole(value: Any) -> int:
    if type(value) is not int or not -_MOST <= value <= _MOST:
        raise ValueError("not a whole number of 64 bits")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _digits(value: Any) -> str:
    if not (_text(value).isascii() and value.isdigit()):
        raise ValueError("not a number's digits")
    return str(value)
