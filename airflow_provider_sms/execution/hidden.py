"""Rows that Airflow must neither store nor show, although it stores and shows the fields of a task."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from airflow.providers.common.compat.sdk import AirflowException, Asset, ObjectStoragePath

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.hooks.sql_source import SqlSource
from airflow_provider_sms.recipients.forms import could_be_number, is_dataframe, is_stream

_TEMPLATE = ("{{", "{%", "{#")
_has_several = re.compile(r"[,;\n]|(?:\d\D*){18}").search
"""Tells a list of numbers that a template wrote out from one number, which has at most 15 digits and a prefix."""


class Rows:
    """Rows whose text form shows only their type, and of a list how many there are.

    Airflow stores ``str(value)`` of template fields, in the serialised DAG and in the rendered fields, which everybody
    who may see the task may read. It does not render within an object of a type that it does not know, so a ``{{`` in
    a recipient's name stays as it is.
    """

    def __init__(self, data: Any) -> None:
        self.data = data

    def __repr__(self) -> str:
        kind = type(self.data).__name__
        if isinstance(self.data, (list, tuple)):  # the length of other objects may take a query
            return f"{kind} of {len(self.data)} {by_count(len(self.data), 'row')}"
        return kind

    def __deepcopy__(self, _: dict[int, Any]) -> Rows:
        return self  # a generator cannot be copied, and a copy of rows would only take memory

    def serialize(self) -> str:
        """Return the text form, for Airflow's serialiser."""
        return repr(self)


def redacted_source(value: Any) -> Any:
    """Return a source as a template field may hold it: paths, references and queries as they are, rows wrapped.

    An asset becomes the place of its files. Texts that could be phone numbers are rows.
    """
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, list, tuple)):
        value = list(value)  # the results of a mapped upstream task come as a lazy sequence
    if isinstance(value, (list, tuple)) and value:
        if all(map(_names_rows, value)):
            return [_place_of(each) if isinstance(each, Asset) else each for each in value]
        return Rows(next(filter(_is_written_out, value), value))
    if isinstance(value, Asset):
        return _place_of(value)
    if value is None or isinstance(value, (Rows, SqlSource)) or _names_rows(value):
        return value
    is_number = isinstance(value, str) and could_be_number(value)
    return Rows([value] if is_number and not (_is_written_out(value) or _has_several(value)) else value)


def _place_of(asset: Asset) -> str:
    """Return the path of a ``file://`` asset (RFC 8089), or the URI of any other."""
    parts = urlsplit(asset.uri)
    return unquote(parts.path) if parts.scheme == "file" else asset.uri


def with_assets(inlets: list[Any], source: Any) -> list[Any]:
    """Return the inlets of a task, and those of its source."""
    sources = source if isinstance(source, (list, tuple)) else [source]
    return [*inlets, *(each for each in sources if isinstance(each, Asset) and each not in inlets)]


def without_shown_rows(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a task that may be mapped, with rows wrapped; assets stay, as each task's inlet."""
    sources = {name: redacted_source(arguments.get(name)) for name in ("source", "suppress")}
    return {**arguments, **{name: source for name, source in sources.items() if isinstance(source, Rows)}}


def located(source: Any, argument: str = "source") -> Any:
    """Return a source as :func:`open_source` takes it, with URIs and queries opened by their Airflow connections."""
    if isinstance(source, Rows):
        if isinstance(source.data, str):
            raise InputError(
                f"{argument} was rendered into the text of rows, which cannot be read back. Pass the upstream task's "
                f"output itself ({argument}=task.output), or set render_template_as_native_obj=True on the DAG"
            )
        return source.data
    if isinstance(source, SqlSource):
        return source.open(argument)
    if isinstance(source, (list, tuple)):
        return [located(item, argument) for item in source]
    if not (isinstance(source, str) and "://" in source):
        return source
    try:
        path = ObjectStoragePath(source)
        _ = path.fs  # here, since its connection can be read in the main thread only
    except (ValueError, ImportError, AirflowException) as error:
        scheme = source.partition("://")[0]
        # Airflow's words for a scheme that nothing is installed for say no more than these.
        cause = None if isinstance(error, ValueError) and str(error).rstrip("'").endswith(scheme) else error
        raise InputError(f"{argument}: no file system for {scheme}://; is its Airflow provider installed?") from cause
    return path


def _names_rows(value: Any) -> bool:
    """Return whether a value names the place of rows: a path, an asset, or a reference to another task's result."""
    if isinstance(value, str):
        return not (could_be_number(value) or _is_written_out(value))
    if is_dataframe(value) or is_stream(value):
        return False  # it may have a column of any name, such as fs
    return isinstance(value, (os.PathLike, Asset)) or hasattr(value, "fs") or _is_reference(value)


def _is_written_out(value: Any) -> bool:
    """Return whether a value is rows as a template writes them out: a list, dict or tuple, or a table in lines."""
    if not isinstance(value, str) or (text := value.strip()).startswith(_TEMPLATE):
        return False
    # A number may begin with a bracket: (082) 123-4567.
    return text[:1] + text[-1:] in {"[]", "{}", "()"} or ("\n" in text and not is_to_be_rendered(text))


class KeepsTexts:
    """A base beside Airflow's ``BaseOperator`` or ``BaseNotifier``: a text without a template stays as it was written.

    With ``render_template_as_native_obj`` Airflow would read it as a literal of Python: ``1e5`` as 100000.0.
    """

    def render_template(self, content: Any, *args: Any, **kwargs: Any) -> Any:
        """Render a value as Airflow does; return a text without a template unchanged."""
        if isinstance(content, str) and not is_to_be_rendered(content):
            return content
        return super().render_template(content, *args, **kwargs)  # type: ignore[misc]


def is_to_be_rendered(value: Any) -> bool:
    """Return whether a value holds a template, or a reference to another task's result."""
    if isinstance(value, (list, tuple, set)):
        return any(map(is_to_be_rendered, value))
    if isinstance(value, dict):
        return any(map(is_to_be_rendered, value.values()))
    if isinstance(value, (str, os.PathLike)):
        text = str(value)
        return any(mark in text for mark in _TEMPLATE)
    return _is_reference(value) or hasattr(value, "template_fields")


def _is_reference(value: Any) -> bool:
    """Return whether a value stands for another task's result, as a mapped argument does."""
    return hasattr(value, "resolve") and hasattr(value, "iter_references")
