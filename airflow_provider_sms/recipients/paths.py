"""Paths, directories, globs and URIs → the data files that they stand for."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import fsspec
from fsspec import AbstractFileSystem

from airflow_provider_sms.exceptions import SourceError, SourceUnavailableError
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.recipients.forms import DATE, could_be_number

if TYPE_CHECKING:
    from collections.abc import Iterator

PARQUET, ARROW, CSV, JSON_LINES = "Parquet", "Arrow", "CSV", "JSON Lines"
FORMATS = {
    **dict.fromkeys(("parquet", "parq", "pq", ""), PARQUET),
    **dict.fromkeys(("arrow", "feather", "ipc"), ARROW),
    **dict.fromkeys(("csv", "tsv"), CSV),
    **dict.fromkeys(("jsonl", "ndjson"), JSON_LINES),
}
"""The formats by the endings of names; a name without one, as Hive writes it, is taken for Parquet."""
_CODECS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
_ENDING = re.compile(r"(?:\.(csv|tsv|jsonl|ndjson)\.(gz|bz2|zst)|\.([^./]*))?$")
_LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
"""Folders in a directory of Parquet files that hold the log of a table, and the kind of table."""
_WILDCARD = re.compile(r"[*?\[]")
# Hadoop writes an object for a folder, and a disk has a folder of the system.
_HIDDEN = re.compile(r"[_.].*|.*_\$folder\$|lost\+found")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file with rows of recipients, on a filesystem of fsspec."""

    filesystem: Any
    path: str

    @property
    def name(self) -> str:
        """The path as logs may show it."""
        return without_secrets(self.path)

    @property
    def ending(self) -> str:
        """The ending of the name, in small letters and without that of a compression."""
        found = self._endings
        return found[1] or found[3] or ""

    @property
    def codec(self) -> str | None:
        """The compression that the name indicates; None where the file is plain."""
        return _CODECS.get(self._endings[2])

    @property
    def format(self) -> str | None:
        """The format that the name tells; None where its ending is of none that is read."""
        return FORMATS.get(self.ending)

    @property
    def _endings(self) -> Any:
        return _ENDING.search(self.name.lower())


def is_path(source: object) -> bool:
    """Return whether a source is a path, or an object such as a ``UPath`` that has one on a filesystem."""
    return isinstance(source, (str, os.PathLike)) or (hasattr(source, "fs") and hasattr(source, "path"))


def without_secrets(source: Any) -> str:
    """Return a path for logs, without a URI's password or signature, and with what could be a phone number masked."""
    text = re.sub(r"(?<=://)[^/@]*@", "*****@", str(source))
    text = re.sub(r"^(https?://[^?]*)\?.*", r"\1", text)
    if could_be_number(text):
        return mask_numbers_in(text.replace("/", ""))
    return "/".join(
        "".join(piece if place % 2 else mask_numbers_in(piece) for place, piece in enumerate(DATE.split(segment)))
        for segment in text.split("/")
    )


def safe_cause(error: Exception, source: Any) -> Exception | None:
    """Return the error of a filesystem, or None where it may quote a secret or a number that is in the path."""
    return error if without_secrets(source) == str(source) else None


def find_files(source: Any) -> list[DataFile]:
    """Return the files that a path stands for, sorted; a folder that cannot be listed is an error, and not left out."""
    name = without_secrets(source)
    if not name.strip():
        raise SourceError("the path is empty: give the path of the files with the recipients")
    try:
        filesystem, path = _locate(source)
        if isinstance(filesystem, AbstractFileSystem):
            # A process has one object for each filesystem, which may have kept the listing of an earlier attempt.
            filesystem.invalidate_cache()
        return _expand(filesystem, path)
    except SourceError as error:
        error.args = (f"{name}: {error}",)
        raise
    except Exception as error:  # noqa: BLE001 - each filesystem raises errors of its own
        where = f" at {without_secrets(error.filename)}" if isinstance(error, OSError) and error.filename else ""
        words = f"{name}: cannot be looked up: {type(error).__name__}{where}"
        is_transient = isinstance(error, OSError) and not isinstance(error, (FileNotFoundError, PermissionError))
        raise (SourceUnavailableError if is_transient else SourceError)(words) from safe_cause(error, source)


def _locate(source: Any) -> tuple[Any, str]:
    if hasattr(source, "fs") and hasattr(source, "path"):
        return source.fs, str(source.path)
    try:
        filesystem, path = fsspec.core.url_to_fs(os.fspath(source))
    except (ImportError, ValueError) as error:
        # These errors name the package to install, or an unknown protocol.
        raise SourceError(str(error)) from safe_cause(error, source)
    return filesystem, path


def _expand(filesystem: Any, path: str) -> list[DataFile]:
    kind, named = _kind(filesystem, path), path.rstrip("/").split("/")
    if kind == "file":
        return [DataFile(filesystem, path)]
    wildcards = (place for place, segment in enumerate(named) if _WILDCARD.search(segment))
    fixed = next(wildcards, None) if kind is None else len(named)
    if fixed is None:
        raise SourceError("there is no such file or directory")
    found = set(_walk(filesystem, "/".join(named[:fixed]), named[fixed:]))
    if not found:
        raise SourceError("the directory holds no file" if kind else "no file matches")
    return [DataFile(filesystem, each) for each in sorted(found)]


def _walk(filesystem: Any, folder: str, segments: list[str]) -> Iterator[str]:
    """Yield the files below a folder that match the segments of a glob; no segments mean all files."""
    entries = {each["name"].rstrip("/"): each for each in filesystem.ls(folder or "/", detail=True)}
    entries.pop(folder.rstrip("/"), None)  # the object that stands for the folder
    if logs := _LOGS.keys() & {path.rsplit("/", 1)[-1] for path in entries}:
        raise SourceError(
            f"the directory is a {_LOGS[min(logs)]} table. Its files also hold rows that were changed or deleted "
            "since, and only its log tells which: pass its present rows, as a SqlSource, a DataFrame or an Arrow "
            "table, or the path of a file to which a task exports them"
        )
    head, *rest = segments or ["**"]
    for path, info in entries.items():
        base = path.rsplit("/", 1)[-1]
        if (_HIDDEN.fullmatch(base) and not _HIDDEN.fullmatch(head)) or not (head == "**" or fnmatchcase(base, head)):
            continue
        kind = info["type"] if info["type"] in {"directory", "file"} else _kind(filesystem, path)
        if kind == "directory":
            if head == "**" and info.get("islink"):
                raise SourceError(
                    f"the directory holds {without_secrets(path)}, a link to another directory, which is not "
                    "followed. Name such links in paths of their own, in a list, or give a glob that matches the "
                    "directories, such as FOLDER/*"
                )
            yield from _walk(filesystem, path, segments if head == "**" else rest)
        elif not rest:
            yield path
    if head == "**" and rest:
        yield from _walk(filesystem, folder, rest)


def _kind(filesystem: Any, path: str) -> str | None:
    """Return whether a path is a file or a directory; None where nothing is there."""
    try:
        return str(filesystem.info(path)["type"])
    except FileNotFoundError:
        return None
