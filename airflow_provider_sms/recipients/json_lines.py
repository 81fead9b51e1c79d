"""Newline-delimited JSON, plain and compressed: one object a line, each of which is a row.

A file does not say which columns it has: the first rows tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.files import opened_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_provider_sms.recipients.paths import DataFile

_LONGEST = 1 << 20
"""The most bytes of a line, so that a file without line breaks is found."""


def read_json_lines(files: Sequence[DataFile]) -> Iterator[dict[str, Any]]:
    """Yield the rows of files in order."""
    for file in files:
        with opened_text(file) as content:
            for number, line in enumerate(iter(lambda: content.readline(_LONGEST + 1), b""), 1):
                text = line.removeprefix(b"\xef\xbb\xbf").strip()
                if text:
                    yield _row(text, file, number)


def _row(text: bytes, file: DataFile, number: int) -> dict[str, Any]:
    try:
        row = orjson.loads(text) if len(text) <= _LONGEST else None
    except orjson.JSONDecodeError:
        row = None  # the parser's words may quote the line
    if isinstance(row, dict):
        return row
    raise SourceError(
        f"{file.name}: line {number} is not a JSON object; write one object a line, of up to {_LONGEST >> 20} MiB, in "
        "UTF-8. A file that is one JSON array is not read"
    )
