"""Where a report is written: never over the recipients."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.rows import located


def report_path(report: str) -> Any:
    """Give where a report is to be written: a local path, whose folder is made, or one of an object store.

    :raises InputError: there is no file system for the URI, or the folder cannot be made or written to.
    """
    if "://" in report:
        return located(report, "report")
    path = Path(report).absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"report: the folder {path.parent} cannot be made: {error.strerror}") from error
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"report: {path} cannot be written; it must be a file in a folder that this task may write to")
    return path


def refuse_report_in_source(report: Any, source: Any) -> None:
    """Refuse to write the report over the recipients, or among them.

    :param source: as the operator was given it.
    :raises InputError: says so.
    """
    for each in source if isinstance(source, (list, tuple)) else [source]:
        if not isinstance(each, (str, os.PathLike)) or (isinstance(report, Path) == ("://" in str(each))):
            continue
        place, read = _resolved(report), _resolved(each)
        if place == read or place.startswith(read.rstrip("/") + "/") or fnmatch(place, read):
            raise InputError(
                f"report: {report} would be written over the source, or among its files: give another path"
            )


def _resolved(path: Any) -> str:
    return str(path) if "://" in str(path) else str(Path(path).resolve())
