"""Redaction: recipients in memory are wrapped, so that Airflow neither stores nor shows them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from airflow.providers.common.compat.sdk import AirflowException, Asset, ObjectStoragePath

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.hooks.sql_source import SqlSource
from airflow_provider_sms.recipients.forms import could_be_number, is_dataframe, is_stream
from airflow_provider_sms.recipients.paths import without_secrets

if TYPE_CHECKING:
    import jinja2
    from airflow.providers.common.compat.sdk import Context


def asset_location(asset: Asset) -> str | None:
    """Return the path of a ``file://`` asset (RFC 8089), or the URI of any other; None if it names no place."""
    parts = urlsplit(asset.uri)
    if parts.scheme == "file":
        # file://data/people is the folder /people of a machine called data: a slash is missing.
        return unquote(parts.path) if parts.netloc in ("", "localhost") else None
    return asset.uri if "://" in asset.uri or PurePath(asset.uri).is_absolute() else None


def require_location(asset: Asset, argument: str) -> str:
    """Return the place of an asset's files; an error names the operator's argument."""
    location = asset_location(asset)
    if location is None:
        raise InputError(
            f"{argument}: asset {asset.name!r} has no file location: its URI is {without_secrets(asset.uri)!r}; "
            "it should be one such as 'file:///data/people/' or 's3://bucket/people/'"
        )
    return location


def with_assets(inlets: list[Any], source: Any) -> list[Any]:
    """Return the inlets of a task that reads a source: its own, and the source's assets."""
    found = [asset for asset in (source if isinstance(source, (list, tuple)) else [source]) if isinstance(asset, Asset)]
    return [*inlets, *(asset for asset in found if asset not in inlets)]


_FRAMES = {"pandas", "polars", "pyarrow"}
"""Packages whose tables know their length."""


class Rows:
    """Rows whose text form shows only how many there are.

    Airflow stores ``str(value)`` of template fields, in the serialised DAG and in the rendered fields, which everybody
    who may see the task may read. It does not render within an object of a type that it does not know, so a ``{{`` in
    a recipient's name stays as it is.
    """

    def __init__(self, data: Any) -> None:
        self.data = data
        self._is_spent = False

    def __repr__(self) -> str:
        kind = type(self.data)
        # The length of other objects, such as a relation of DuckDB, may take a query.
        counted = isinstance(self.data, (list, tuple)) or kind.__module__.partition(".")[0] in _FRAMES
        if counted and hasattr(self.data, "__len__"):
            return f"{kind.__name__} of {len(self.data)} {by_count(len(self.data), 'row')}"
        if isinstance(self.data, Mapping):
            return f"{kind.__name__} of {len(self.data)} {by_count(len(self.data), 'key')}"
        return kind.__name__

    def __deepcopy__(self, _: dict[int, Any]) -> Rows:
        return self  # a generator cannot be copied, and a copy of rows would only take memory

    def take(self, argument: str) -> Any:
        """Return the rows, to be read; refuse those that can be read once, and that an earlier attempt has read."""
        if self._is_spent:
            raise InputError(
                f"{argument}: an earlier attempt has read the {type(self.data).__name__}, which can be read once. Let "
                "a function of @task.bulk_sms return it, which each attempt calls anew, or pass a list or a path"
            )
        self._is_spent = isinstance(self.data, Iterator)
        return self.data

    def serialize(self) -> str:
        """Return the text form, for Airflow's serialiser."""
        return repr(self)


def redacted_source(value: Any) -> Any:
    """Return a source as a template field may hold it: paths, references and queries unchanged, rows wrapped.

    An asset becomes the place of its files; an asset that names no place stays, for :func:`located` to refuse. Texts
    that could be phone numbers are rows. A whole number is not a source: it may be a count that a function returns.
    """
    if isinstance(value, Asset):
        return asset_location(value) or value
    if isinstance(value, str):
        return Rows(value) if _is_written_out(value) else Rows([value]) if could_be_number(value) else value
    if value is None or isinstance(value, (Rows, SqlSource)) or _names_rows(value):
        return value
    if isinstance(value, Sequence) and not isinstance(value, (list, tuple, bytes, bytearray)):
        # The results of a mapped upstream task come as a lazy sequence.
        return redacted_source(list(value))
    if isinstance(value, (list, tuple)) and value and all(map(_names_rows, value)):
        return _redacted_places(value)
    return Rows(value)


def _redacted_places(places: Sequence[Any]) -> Any:
    """Return several places as a template field may hold them; wrapped if one of them is a number, or rows."""
    table = next(filter(_is_table, places), None)
    if table is not None or _has_number(places):
        return Rows(places if table is None else table)
    return [redacted_source(item) for item in places] if any(isinstance(item, Asset) for item in places) else places


def without_shown_rows(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a task that may be mapped, with numbers and rows wrapped: Airflow stores them as given.

    An asset is left as it is, since each mapped task derives its inlet from it.
    """
    sources = {name: redacted_source(arguments.get(name)) for name in ("source", "suppress")}
    return {**arguments, **{name: source for name, source in sources.items() if isinstance(source, Rows)}}


def located(source: Any, argument: str = "source") -> Any:
    """Return a source as :func:`open_source` takes it; an error names the operator's argument.

    A URI becomes a path that knows its Airflow connection, and a query becomes the rows that it will return.
    """
    if isinstance(source, Rows):
        if isinstance(source.data, str):
            raise InputError(
                f"{argument} was rendered into the text of rows, which cannot be read back. Pass the upstream task's "
                f"output itself ({argument}=task.output), or set render_template_as_native_obj=True on the DAG"
            )
        return source.take(argument)
    if isinstance(source, SqlSource):
        return source.open(argument)
    if isinstance(source, Asset):
        source = require_location(source, argument)
    if isinstance(source, str) and "://" in source:
        scheme = source.partition("://")[0]
        try:
            path = ObjectStoragePath(source)
            # Resolved here: its connection can be read in the main thread only.
            _ = path.fs
        except (ValueError, ImportError, AirflowException) as error:
            # Airflow's words for a scheme that nothing is installed for say no more than these.
            is_unknown = isinstance(error, ValueError) and str(error).rstrip("'").endswith(scheme)
            cause = None if is_unknown else error
            raise InputError(
                f"{argument}: no file system for {scheme}://; is its Airflow provider installed?"
            ) from cause
        return path
    if isinstance(source, (list, tuple)):
        return [located(item, argument) for item in source]
    return source


def _names_rows(value: Any) -> bool:
    """Return whether a value names the place of rows: a path, or a reference to another task's result.

    A table does not, though it may take any attribute's name for one of its columns.
    """
    if is_dataframe(value) or is_stream(value):
        return False
    return isinstance(value, (str, os.PathLike)) or hasattr(value, "fs") or is_reference(value)


def _has_number(values: Sequence[Any]) -> bool:
    return any(isinstance(value, str) and could_be_number(value) for value in values)


def _is_table(value: Any) -> bool:
    """Return whether an element of a list is rows that a template wrote out; a glob may begin with a bracket, too."""
    return isinstance(value, str) and _is_written_out(value) and any(mark in value for mark in "'\"\n")


_TUPLE = re.compile(r"\([\[({'\"]")
"""The beginning of a tuple of rows or of texts, as Python writes it; the name of a file may begin with a bracket."""


def _is_written_out(text: str) -> bool:
    """Return whether a text is rows that a template wrote out, as ``{{ ti.xcom_pull(…) }}`` does.

    They are a list, a dict or a tuple, or a table, which has a line for each row.
    """
    text = text.strip()
    if text.startswith(_TEMPLATE):
        return False
    return text.startswith(("[", "{")) or bool(_TUPLE.match(text)) or ("\n" in text and not is_to_be_rendered(text))


def is_reference(value: Any) -> bool:
    """Return whether a value stands for another task's result, as a mapped argument does."""
    return hasattr(value, "resolve") and hasattr(value, "iter_references")


_TEMPLATE = ("{{", "{%", "{#")


def redacted(value: Any, *, rendered: bool) -> Any:
    """Return a function's argument as a template field may hold it: wrapped, unless Airflow has yet to render it.

    Assets stay unwrapped, since Airflow looks for them among the arguments.
    """
    if isinstance(value, (Rows, Asset)) or (not rendered and is_to_be_rendered(value)):
        return value
    return Rows(value)


def plain(value: Any) -> Any:
    """Return an argument as the function gets it."""
    return value.data if isinstance(value, Rows) else value


class KeepsTexts:
    """A base beside Airflow's ``BaseOperator`` or ``BaseNotifier``: a text without a template stays as it was written.

    With ``render_template_as_native_obj`` Airflow would read it as a literal of Python: ``1e5`` as 100000.0.
    """

    def render_template(
        self,
        content: Any,
        context: Context,
        jinja_env: jinja2.Environment | None = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """Render a value as Airflow does; return a text without a template unchanged."""
        if isinstance(content, str) and not is_to_be_rendered(content):
            return content
        return super().render_template(content, context, jinja_env, seen_oids)  # type: ignore[misc]


def is_to_be_rendered(value: Any) -> bool:
    """Return whether a value holds a template, or a reference to another task's result."""
    if isinstance(value, (list, tuple, set)):
        return any(map(is_to_be_rendered, value))
    if isinstance(value, dict):
        return any(map(is_to_be_rendered, value.values()))
    if isinstance(value, (str, os.PathLike)):
        text = str(value)
        return any(mark in text for mark in _TEMPLATE)
    return is_reference(value) or hasattr(value, "template_fields")
