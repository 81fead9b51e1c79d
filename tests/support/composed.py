"""Rows that were composed, as lists of Python's."""

from __future__ import annotations

from typing import NamedTuple

from airflow_provider_sms.messages.spool import SCHEMA


class Invalid(NamedTuple):
    """A row that cannot be texted, with its number as far as it has one."""

    row: int
    column: str
    reason: str
    destination: str | None


class Composed(NamedTuple):
    """Messages, each with its row, and the invalid rows."""

    rows: list[int]
    destinations: list[str]
    contents: list[str]
    keys: list[bytes]
    parts: list[int]
    rejected: list[Invalid]


def composed(composer, batch, first=0):
    """Compose a batch, and return its rows as lists; none is both a message and invalid."""
    rows = composer.compose(batch)
    assert rows.schema == SCHEMA
    found = Composed([], [], [], [], [], [])
    for row, each in enumerate(rows.to_pylist(), first):
        assert (each["key"] is None) == (each["content"] is None) == (each["reason"] is not None)
        if each["key"] is None:
            found.rejected.append(Invalid(row, each["column"], each["reason"], each["destination"]))
            continue
        message = (row, each["destination"], each["content"], each["key"], each["parts"])
        for column, value in zip(found, message, strict=False):
            column.append(value)
    return found
