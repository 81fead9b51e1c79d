"""Sources: recipients in any form → batches of rows, read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.formatting import by_count, join_some
from airflow_provider_sms.recipients.batches import Source, naming
from airflow_provider_sms.recipients.csv import opened_csv
from airflow_provider_sms.recipients.files import open_files, opened_arrow, opened_parquet, read_json_lines
from airflow_provider_sms.recipients.forms import (
    could_be_number,
    explain_other,
    is_dataframe,
    is_in_number_list,
    is_stream,
)
from airflow_provider_sms.recipients.memory import from_dataframe, from_dicts, from_stream
from airflow_provider_sms.recipients.paths import (
    ARROW,
    CSV,
    FORMATS,
    JSON_LINES,
    PARQUET,
    find_files,
    is_path,
    without_secrets,
)

_READERS = {ARROW: opened_arrow, CSV: opened_csv, PARQUET: opened_parquet}


def open_source(source: Any, *, argument: str = "source", column: str = "destination") -> Source:
    """Return the source of recipients in any of the :data:`.FORMS`; ``column`` is that of a list of numbers."""
    with naming(argument):
        opened = _opened(source, column)
    opened.argument = argument
    return opened


def _opened(source: Any, column: str) -> Source:
    if isinstance(source, Source):
        return source
    if isinstance(source, str) and could_be_number(source):
        source = [source]
    if is_dataframe(source):
        return from_dataframe(source)
    if is_stream(source):
        return from_stream(source)
    if is_path(source):  # an open file of fsspec is an iterator, too
        return _open_paths([source])
    if isinstance(source, (list, tuple)):
        return _open_list(source, column)
    if isinstance(source, Iterator):
        return from_dicts(source, type(source).__name__)
    raise SourceError(explain_other(source))


def _open_list(source: list[Any] | tuple[Any, ...], column: str) -> Source:
    description = f"list of {len(source)} {by_count(len(source), 'row')}"
    if all(isinstance(row, Mapping) for row in source):
        return from_dicts(source, description)
    if any(map(could_be_number, source)):
        other = next((place for place, item in enumerate(source) if not is_in_number_list(item)), None)
        if other is None:
            return from_dicts([{column: number} for number in source], description)
        raise SourceError(
            f"a list of phone numbers may hold nothing else, no template either, and element {other} of {len(source)} "
            "is not one. Elements count from 0"
        )
    if all(map(is_path, source)):
        return _open_paths(source)
    kinds = ", ".join(sorted({type(element).__name__ for element in source}))
    raise SourceError(f"a list of recipients must hold one kind of element: paths, dicts or numbers, not {kinds}")


def _open_paths(paths: Sequence[Any]) -> Source:
    files = [file for path in paths for file in find_files(path)]
    first = {file.format: file for file in reversed(files)}
    if None in first:
        raise SourceError(
            f"{first[None].name}: the ending of its name is none that is read: {', '.join(filter(None, FORMATS))}. If "
            "it has recipients, convert it, and name it by its format; otherwise leave it out, by a glob such as *.csv"
        )
    if len(first) > 1:
        one, other, *_ = sorted(first.values(), key=files.index)
        raise SourceError(
            f"{one.name} is {one.format}, and {other.name} is {other.format}: one source is of one format; choose with "
            "a glob, such as *.csv or **/*.parquet"
        )
    (kind,) = filter(None, first)
    names = join_some([without_secrets(path) for path in paths])
    description = f"{names} ({len(files)} {kind} {by_count(len(files), 'file')})"
    if kind == JSON_LINES:
        return from_dicts(read_json_lines(files), description)
    return open_files(_READERS[kind], files, description)
