"""Recipients in memory, kept out of sight of what Airflow stores and shows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException, Asset, ObjectStoragePath

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.assets import asset_location, require_location


class Rows:
    """Wraps rows so that their text form shows only how many there are.

    Airflow stores ``str(value)`` of template fields, in the serialised DAG and in the rendered fields, which everybody
    who may see the task may read. It does not render within an object that it does not know, so a ``{{`` in
    somebody's name stays what it is.

    :param data: a DataFrame, a table, or a list of mappings.
    """

    def __init__(self, data: Any) -> None:
        self.data = data

    def __repr__(self) -> str:
        counted = hasattr(self.data, "__len__") and not isinstance(self.data, str)
        count = f" of {len(self.data)} rows" if counted else ""
        return f"{type(self.data).__name__}{count}"

    def serialize(self) -> str:
        """Give the text form, for Airflow's serialiser."""
        return repr(self)


def shielded_source(value: Any) -> Any:
    """Give the value as a template field may hold it: paths and references as they are, rows wrapped.

    An asset becomes the place of its files; one that names none stays, for :func:`located` to refuse.
    """
    if isinstance(value, Asset):
        return asset_location(value) or value
    if isinstance(value, str) and _is_written_out(value):
        return Rows(value)
    if value is None or isinstance(value, Rows) or _names_rows(value):
        return value
    if isinstance(value, Sequence) and not isinstance(value, (list, tuple)):
        # What a mapped task upstream returned comes as a lazy sequence.
        return shielded_source(list(value))
    if isinstance(value, (list, tuple)) and all(_names_rows(item) for item in value) and value:
        return [shielded_source(item) for item in value] if any(isinstance(item, Asset) for item in value) else value
    return Rows(value)


def located(source: Any, argument: str = "source") -> Any:
    """Give what :func:`open_source` takes: URIs as paths that know their Airflow connection.

    :param argument: which one it is of, for an error.
    :raises InputError: it is text of rows, an asset that names no place, or a URI without a file system.
    """
    if isinstance(source, Rows):
        if isinstance(source.data, str):
            raise InputError(
                "source was rendered into the text of rows, which cannot be read back: give the upstream task's output "
                "itself (source=task.output), or set render_template_as_native_obj=True on the DAG"
            )
        return source.data
    if isinstance(source, Asset):
        source = require_location(source)
    if isinstance(source, str) and "://" in source:
        scheme = source.partition("://")[0]
        try:
            path = ObjectStoragePath(source)
            # Resolved here: its connection can be read in the main thread only.
            _ = path.fs
        except (ValueError, ImportError, AirflowException) as error:
            raise InputError(
                f"{argument}: no file system for {scheme}://; is its Airflow provider installed?"
            ) from error
        return path
    if isinstance(source, (list, tuple)):
        return [located(item) for item in source]
    return source


def _names_rows(value: Any) -> bool:
    """Whether a value says where rows are: a path, or a reference to another task's result."""
    return isinstance(value, (str, os.PathLike)) or hasattr(value, "fs") or is_reference(value)


def _is_written_out(text: str) -> bool:
    """Whether a text is rows that a template wrote out, as ``{{ ti.xcom_pull(…) }}`` does, and no path or template."""
    return text.startswith(("[", "{")) and not text.startswith(("{{", "{%", "{#"))


def is_reference(value: Any) -> bool:
    """Whether a value stands for another task's result; a mapped argument is one of that kind."""
    return hasattr(value, "resolve") and hasattr(value, "iter_references")


_TEMPLATE = ("{{", "{%", "{#")


def shielded(value: Any, *, rendered: bool) -> Any:
    """Give an argument as a template field may hold it: wrapped, unless Airflow has something to render in it yet.

    Assets stay, since Airflow looks for them among the arguments.

    :param rendered: whether Airflow has rendered it.
    """
    if isinstance(value, (Rows, Asset)) or (not rendered and _is_to_be_rendered(value)):
        return value
    return Rows(value)


def plain(value: Any) -> Any:
    """Give an argument as the function gets it."""
    return value.data if isinstance(value, Rows) else value


def _is_to_be_rendered(value: Any) -> bool:
    """Whether a template or a reference to another task's result is in a value."""
    if isinstance(value, (list, tuple, set)):
        return any(map(_is_to_be_rendered, value))
    if isinstance(value, dict):
        return any(map(_is_to_be_rendered, value.values()))
    if isinstance(value, (str, os.PathLike)):
        text = str(value)
        return any(mark in text for mark in _TEMPLATE)
    return is_reference(value) or hasattr(value, "template_fields")
