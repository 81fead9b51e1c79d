"""Paths, directories, globs and URIs → the data files that they stand for."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import fsspec
from fsspec import AbstractFileSystem

from airflow_provider_sms.exceptions import InputError, SourceError, SourceUnavailableError
from airflow_provider_sms.recipients.number_lists import path_without_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON_LINES = "JSON Lines"
_FORMATS = {
    "CSV": ("csv", "tsv"),
    JSON_LINES: ("jsonl", "ndjson"),
    "Arrow": ("arrow", "arrows", "feather", "ipc"),
    "Parquet": ("parquet", "parq", "pq"),
}
"""The formats, and the endings of their names."""
_FORMAT_OF = {ending: name for name, endings in _FORMATS.items() for ending in endings}
_CODECS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
_COMPRESSED = re.compile(r"\.(csv|tsv|jsonl|ndjson)\.(gz|bz2|zst)$")
_NOT_PARQUET = re.compile(r"\.(?:csv|tsv|txt|jsonl?|ndjson|xlsx?|orc|arrows?|feather|ipc|avro|xml|zip|gz|bz2|zst)$")
"""Searched in a name in lower case: an ending by which a file is opened as something other than Parquet."""
_TABLE = re.compile(
    r"\.(?:xls[xmb]?|ods|json|orc|avro|xml|zip|7z|rar|tar|xz)$"
    r"|\.(?:csv|tsv|txt|jsonl?|ndjson|parquet|parq|pq|arrows?|feather|ipc|orc)\.(?!(?:crc|md5|sha\d*|sig|asc)$)[^.]+$"
)
"""Searched in a name in lower case: whether a file in a directory may hold recipients, though it is not read."""
_LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
"""Folders in a directory of Parquet files that hold the log of a table, and the kind of table."""
_MAGIC = (b"PAR1", b"ARROW1", b"ORC", b"FEA1")
READ = (
    "Parquet (.parquet, .parq, .pq), Arrow and Feather (.arrow, .arrows, .feather, .ipc), CSV (.csv, .tsv) "
    "and JSON lines (.jsonl, .ndjson), the latter two also with .gz, .bz2 or .zst"
)
"""The formats that are read, as an error lists them."""
_WILDCARD = re.compile(r"[*?\[]")
_FOLDER_KEY = "_$folder$"
"""The ending of an object that stands for a folder, as Hadoop writes it."""
_LOST_AND_FOUND = "lost+found"
"""A folder at the top of a disk, which belongs to the system."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file with rows of recipients."""

    filesystem: Any
    """The fsspec filesystem of the file."""
    path: str
    """The path of the file on that filesystem."""

    @property
    def name(self) -> str:
        """The path as logs may show it."""
        return without_secrets(self.path)

    @property
    def ending(self) -> str:
        """The ending of the name, in small letters and without that of a compression."""
        name = self.name.rsplit("/", 1)[-1].lower()
        found = _COMPRESSED.search(name)
        return found[1] if found else name.rpartition(".")[2] if "." in name else ""

    @property
    def codec(self) -> str | None:
        """The compression that the name indicates; None where the file is plain."""
        found = _COMPRESSED.search(self.name.lower())
        return _CODECS[found[2]] if found else None

    @property
    def format(self) -> str | None:
        """The format that the name indicates; None where it indicates none, so that Parquet is assumed."""
        return _FORMAT_OF.get(self.ending)

    def open(self) -> Any:
        """Return the file, opened for reading bytes; the caller closes it."""
        return self.filesystem.open(self.path, "rb")


def require_parquet_name(path: str, argument: str) -> None:
    """Refuse a path for a Parquet file whose name says that the file is something else.

    A name that indicates no format may be used: such a file is taken for Parquet.

    :param path: path or URI of the file to write.
    :param argument: the argument that gives the path, for the error.
    :raises InputError: names the ending, and says what to do.
    """
    if found := _NOT_PARQUET.search(path.rstrip("/ ").lower()):
        raise InputError(
            f"{argument} is written as Parquet, so its name may not end with {found[0]}: use a name that ends with "
            ".parquet"
        )


def is_path(source: object) -> bool:
    """Return whether a source is a path, or an object such as a ``UPath`` that has one on a filesystem."""
    return isinstance(source, (str, os.PathLike)) or (hasattr(source, "fs") and hasattr(source, "path"))


def without_secrets(source: Any) -> str:
    """Return a path for logs, without the password or the signature that a URI may carry, and with numbers masked."""
    text = re.sub(r"(?<=://)[^/@]*@", "*****@", str(source))
    return path_without_numbers(re.sub(r"^(https?://[^?]*)\?.*", r"\1", text))


def safe_cause(error: Exception, source: Any) -> Exception | None:
    """Return the error of a filesystem, or None where it may quote a secret or a number that is in the path."""
    return error if without_secrets(source) == str(source) else None


def find_files(source: Any) -> list[DataFile]:
    """Return the files that a path stands for, sorted.

    :param source: path or URI of a file or a directory, a glob, or an object with ``fs`` and ``path``.
    :raises SourceError: there are no such files, or the filesystem cannot list them.
    """
    name = without_secrets(source)
    try:
        filesystem, path = _locate(source)
        if isinstance(filesystem, AbstractFileSystem):
            # A process has one object for each filesystem, which may have kept the listing of an earlier attempt.
            filesystem.invalidate_cache()
        return _expand(filesystem, path, name)
    except SourceError:
        raise
    except Exception as error:  # noqa: BLE001 - each filesystem raises errors of its own
        where = f" at {without_secrets(error.filename)}" if isinstance(error, OSError) and error.filename else ""
        words = f"{name}: cannot be looked up: {type(error).__name__}{where}"
        raise SourceError(words) from safe_cause(error, source)


def _locate(source: Any) -> tuple[Any, str]:
    if hasattr(source, "fs") and hasattr(source, "path"):
        return source.fs, str(source.path)
    text = os.fspath(source)
    if not text.strip():
        raise SourceError("the path is empty: give the path of the files with the recipients")
    try:
        filesystem, path = fsspec.core.url_to_fs(text)
    except (ImportError, ValueError) as error:
        # These errors name the package to install, or an unknown protocol.
        raise SourceError(f"{without_secrets(text)}: {error}") from safe_cause(error, text)
    return filesystem, path


def _expand(filesystem: Any, path: str, name: str) -> list[DataFile]:
    segments: list[str] = []
    if (kind := _kind(filesystem, path)) == "file":
        return [DataFile(filesystem, path)]
    if kind is None:
        named = path.rstrip("/").split("/")
        fixed = next((place for place, segment in enumerate(named) if _WILDCARD.search(segment)), None)
        if fixed is None:
            raise SourceError(f"{name}: there is no such file or directory")
        path, segments = "/".join(named[:fixed]), named[fixed:]
        if _kind(filesystem, path or "/") is None:
            raise SourceError(f"{name}: no file matches")
    try:
        found = dict(_walk(filesystem, path, segments))
    except SourceError as error:
        error.args = (f"{name}: {error}",)
        raise
    below = [DataFile(filesystem, each) for each in sorted(found)]
    files = [file for file in below if found[file.path] or _is_data(file)]
    kept = {file.path for file in files}
    if others := [file.name for file in below if file.path not in kept and _TABLE.search(file.name.lower())]:
        raise SourceError(
            f"{name}: the directory holds {others[0]}, which is not read. If it has recipients, convert it; otherwise "
            f"move it away, or give a glob. Formats that are read: {READ}"
        )
    if not files:
        raise SourceError(
            f"{name}: no file matches"
            if segments
            else f"{name}: the directory holds no file that is read. Convert other files, and name them by their "
            f"format. Formats that are read: {READ}"
        )
    return files


def _walk(filesystem: Any, folder: str, segments: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield the files below a folder, and whether a glob matches each by its name.

    :param segments: those of the glob, below the folder; none for all files.
    :raises SourceError: people would be left out, or texted although they are no longer in the table.
    """
    entries = {each["name"].rstrip("/"): each for each in _listed(filesystem, folder)}
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
        if (_is_hidden(base) and not _is_hidden(head)) or not (head == "**" or fnmatchcase(base, head)):
            continue
        is_certain = info["type"] == "directory" or (info["type"] == "file" and info.get("size") != 0)
        kind = info["type"] if is_certain else _kind(filesystem, path)
        if kind == "directory":
            if head == "**" and info.get("islink"):
                raise SourceError(
                    f"the directory holds {without_secrets(path)}, a link to another directory, which is not "
                    "followed. Name such links in paths of their own, in a list, or give a glob that matches the "
                    "directories, such as FOLDER/*"
                )
            yield from _walk(filesystem, path, segments if head == "**" else rest)
        elif not rest:
            yield path, bool(segments)
    if head == "**" and rest:
        yield from _walk(filesystem, folder, rest)


def _listed(filesystem: Any, folder: str) -> list[dict[str, Any]]:
    """Return the entries of a folder.

    :raises SourceError: they cannot be listed.
    :raises SourceUnavailableError: the same, where a retry may succeed.
    """
    try:
        return list(filesystem.ls(folder or "/", detail=True))
    except FileNotFoundError:
        raise
    except OSError as error:
        kind = SourceError if isinstance(error, PermissionError) else SourceUnavailableError
        why = os.strerror(error.errno) if error.errno else type(error).__name__
        raise kind(
            f"the folder {without_secrets(folder)} cannot be listed, so its files would be left out: {why}. Let the "
            "task's user read it, or name other folders"
        ) from None


def _kind(filesystem: Any, path: str) -> str | None:
    """Return whether a path is a file or a directory; None where nothing is there."""
    try:
        info = filesystem.info(path)
    except FileNotFoundError:
        return None
    if info["type"] == "other":  # to open a pipe may take for ever, and it could be read only once
        raise SourceError(
            f"{without_secrets(path)} is a pipe, a socket or a device. Write its rows to a file, and pass the path of "
            "that file"
        )
    if info["type"] == "file" and info.get("size") == 0:
        # An object without a byte may stand for a folder of an object store.
        is_folder = path.endswith("/") or any(other.startswith(f"{path}/") for other in filesystem.find(path))
        return "directory" if is_folder else "file"
    return str(info["type"])


def _is_hidden(segment: str) -> bool:
    """Return whether a name is passed over, unless it is given."""
    return segment.startswith(("_", ".")) or segment.endswith(_FOLDER_KEY) or segment == _LOST_AND_FOUND


def _is_data(file: DataFile) -> bool:
    """Return whether a file is data, not a note beside data; if in doubt it is, so that no recipients are left out."""
    if not file.ending or file.format is not None:
        return True
    with file.open() as stream:
        return bool(stream.read(max(map(len, _MAGIC))).startswith(_MAGIC))
