"""The traces of a run outside Airflow: the sandbox's witness, the ledger, the table and the logs."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

_LEFT_OUT = re.compile(r"Left out: \d+ of \d+ rows? cannot be texted: (.*)\. Rows count from 0:")
_REASON = re.compile(r"(\d+) times? (.*)")


@dataclass(frozen=True, slots=True)
class Witnessed:
    """The messages that the sandbox accepted, by its witness.

    :param messages: number of messages.
    :param people: number of different destinations.
    :param most: how often the same text went to the same number, at most.
    :param requests: messages of each request.
    :param event_ids: event ids of these requests.
    """

    messages: int
    people: int
    most: int
    requests: dict[int, int]
    event_ids: frozenset[int]


def rows_of(table: Path) -> int:
    """Return the number of rows of a Parquet file."""
    return int(pq.ParquetFile(table).metadata.num_rows)


def witnessed(witness: bytes, kind: str) -> Witnessed:
    """Return the content of a witness.

    :param kind: ``bulk`` or ``group``; messages of the other kind are ignored.
    """
    entries = [entry for entry in map(json.loads, witness.splitlines()) if entry["kind"] == kind]
    texts = Counter((entry["destination"], entry["content"]) for entry in entries)
    return Witnessed(
        messages=len(entries),
        people=len({entry["destination"] for entry in entries}),
        most=max(texts.values(), default=0),
        requests=dict(Counter(entry["request"] for entry in entries)),
        event_ids=frozenset(entry["event_id"] for entry in entries),
    )


def ledger_entries(ledger: Path) -> list[tuple[str, str, int, int]]:
    """Return the ledger's requests by kind and state: number of requests, and of accepted messages."""
    query = "SELECT kind, state, COUNT(*), SUM(messages) FROM sms_request GROUP BY kind, state ORDER BY kind, state"
    with closing(sqlite3.connect(ledger)) as connection:
        return connection.execute(query).fetchall()


def reasons_in(output: str) -> dict[str, int]:
    """Return the reasons in a task's log why rows were invalid, with the number of rows for each."""
    found = _LEFT_OUT.search(output)
    if found is None:
        return {}
    # A reason may contain "; " itself: the next reason begins with its count.
    pairs = (_REASON.fullmatch(part) for part in re.split(r"; (?=\d+ times? )", found[1]))
    return {pair[2]: int(pair[1]) for pair in pairs if pair is not None}


def files_with(secret: str, folder: Path) -> list[str]:
    """Return the files below a folder that contain a secret."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [str(path.relative_to(folder)) for path in files if secret.encode() in path.read_bytes()]


def numbers_in(output: str, witness: bytes) -> int:
    """Return how many runs of digits in an output are the number of a recipient."""
    numbers = {json.loads(line)["destination"] for line in witness.splitlines()}
    written = {*numbers, *("0" + number[2:] for number in numbers)}
    return sum(digits in written for digits in re.findall(r"\d+", output))
