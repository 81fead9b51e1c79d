"""Paths, directories, globs and URIs → the data files that they stand for."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from glob import escape
from typing import TYPE_CHECKING, Any

import fsspec
from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

from airflow_provider_sms.exceptions import InputError, SourceError, SourceUnavailableError
from airflow_provider_sms.recipients.number_lists import path_without_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CSV_NAME = re.compile(r"\.(csv|tsv)(?:\.(gz|bz2|zst))?$")
"""Searched in a name in lower case: whether a file is CSV, its delimiter (``csv`` or ``tsv``), and its compression."""
JSON_NAME = re.compile(r"\.(jsonl|ndjson)(?:\.(gz|bz2|zst))?$")
"""Searched in a name in lower case: whether a file holds JSON lines, and its compression."""
_CODECS = {None: None, "gz": "gzip", "bz2": "bz2", "zst": "zstd"}
JSON_LINES = "JSON Lines"
_NAMES = {
    "CSV": CSV_NAME,
    JSON_LINES: JSON_NAME,
    "Arrow": re.compile(r"\.(arrow|arrows|feather|ipc)$"),
    "Parquet": re.compile(r"\.(parquet|parq|pq)$"),
}
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
    def format(self) -> str | None:
        """The format that the name of the file indicates; None where it indicates none, so that Parquet is assumed."""
        return _format_of(self.name)

    def open(self) -> Any:
        """Return the file, opened for reading bytes; the caller closes it."""
        return self.filesystem.open(self.path, "rb")


def codec_of(name: str, pattern: re.Pattern[str]) -> str | None:
    """Return the compression that a name indicates; None where the file is plain.

    :param pattern: finds the compression as its second group, in lower case.
    """
    found = pattern.search(name.lower())
    return _CODECS[found[2]] if found else None


def _format_of(name: str) -> str | None:
    return next((kind for kind, pattern in _NAMES.items() if pattern.search(name.lower())), None)


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


class _NotingFileSystem(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """The local filesystem, which notes the folders that it cannot list: fsspec passes them over without an error."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.unlisted: dict[str, OSError] = {}

    def ls(self, path: str, detail: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002 - as fsspec has it
        try:
            return super().ls(path, detail, **kwargs)
        except OSError as error:
            self.unlisted[self._strip_protocol(path)] = error
            raise


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
        listing = _NotingFileSystem() if isinstance(filesystem, LocalFileSystem) else filesystem
        return [DataFile(filesystem, found) for found in _expand(listing, path, name)]
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


def _expand(filesystem: Any, path: str, name: str) -> list[str]:
    if (kind := _kind(filesystem, path)) is None and not _WILDCARD.search(path):
        raise SourceError(f"{name}: there is no such file or directory")
    if kind == "file":
        return [path]
    if kind == "directory":
        return _in_directory(filesystem, path, name)
    files: list[str] = []
    for match in sorted(filesystem.glob(path)):
        if _is_passed_over(match, path):
            continue
        if _kind(filesystem, match) == "directory":
            files += _in_directory(filesystem, match, name)
        else:
            files.append(match)
    _require_listed(filesystem, name, partial(_is_matched, glob=path))
    if (link := _unfollowed_link(filesystem, path)) is not None:
        raise SourceError(
            f"{name}: the glob matches files below {without_secrets(link)}, a link to a directory, which a glob does "
            "not follow. Name each such link in a path of its own, in a list, or give a glob that does not match it"
        )
    if not files:
        raise SourceError(f"{name}: no file matches")
    return sorted(dict.fromkeys(files))


def _require_listed(filesystem: Any, name: str, may_hold_files: Callable[[str], bool]) -> None:
    """Refuse a folder that could not be listed, if files of the source may lie in it.

    :param may_hold_files: takes a folder, and returns that.
    :raises SourceError: names the folder.
    :raises SourceUnavailableError: the same, where a retry may succeed.
    """
    for folder, error in filesystem.unlisted.items() if isinstance(filesystem, _NotingFileSystem) else ():
        # A folder that is gone has no files.
        if not isinstance(error, FileNotFoundError) and may_hold_files(folder):
            kind = SourceError if isinstance(error, PermissionError) else SourceUnavailableError
            raise kind(
                f"{name}: the folder {without_secrets(folder)} cannot be listed, so its files would be left out: "
                f"{error.strerror or type(error).__name__}. Let the task's user read it, or name other folders"
            )


def _is_searched(folder: str, directory: str) -> bool:
    """Return whether a folder is a directory or lies in it, and is neither hidden nor the system's."""
    if not f"{folder}/".startswith(f"{directory}/"):
        return False
    below = folder[len(directory) :].split("/")
    return not any(_is_hidden(each) or each == _LOST_AND_FOUND for each in below)


def _is_matched(folder: str, glob: str) -> bool:
    """Return whether a glob may match files in a folder, which is not the system's."""
    for pattern, segment in zip(glob.rstrip("/").split("/"), folder.split("/"), strict=False):
        if "**" in pattern:
            break
        if not fnmatchcase(segment, pattern):
            return False
    return not (folder.endswith(f"/{_LOST_AND_FOUND}") or _is_passed_over(f"{folder}/file", glob))


def _kind(filesystem: Any, path: str) -> str | None:
    try:
        info = filesystem.info(path)
    except FileNotFoundError:
        return None
    kind = info["type"]
    if kind == "other":  # to open a pipe may take for ever, and it could be read only once
        raise SourceError(
            f"{without_secrets(path)} is a pipe, a socket or a device. Write its rows to a file, and pass the path of "
            "that file"
        )
    is_folder = kind == "directory" or (info.get("size") == 0 and _is_folder_key(path, filesystem.find(path)))
    return "directory" if is_folder else "file"


def _is_folder_key(path: str, found: Iterable[str]) -> bool:
    """Return whether an object without a byte stands for a folder of an object store.

    :param found: the paths of the objects there.
    """
    return path.endswith("/") or any(other.startswith(f"{path}/") for other in found)


def _in_directory(filesystem: Any, path: str, name: str) -> list[str]:
    below = len(path.rstrip("/"))
    found_there = filesystem.find(path, detail=True)
    _require_listed(filesystem, name, partial(_is_searched, directory=path.rstrip("/")))
    files = sorted(
        file for file, info in found_there.items() if info.get("size") != 0 or not _is_folder_key(file, found_there)
    )
    if logs := _LOGS.keys() & {segment for file in files for segment in file[below:].split("/")}:
        raise SourceError(
            f"{name}: the directory is a {_LOGS[min(logs)]} table. Its files also hold rows that were changed or "
            "deleted since, and only its log tells which: pass its present rows, as a SqlSource, a DataFrame or an "
            "Arrow table, or the path of a file to which a task exports them"
        )
    shown = [file for file in files if not any(map(_is_hidden, file[below:].split("/")))]
    others = (file for file in shown if found_there[file].get("islink") or found_there[file]["type"] == "other")
    if (link := next((each for each in others if _kind(filesystem, each) == "directory"), None)) is not None:
        raise SourceError(
            f"{name}: the directory holds {without_secrets(link)}, a link to another directory, which is not followed. "
            "Give a glob that matches the directories, such as FOLDER/*"
        )
    found = [file for file in shown if _is_data(filesystem, file)]
    other = next((file for file in shown if _TABLE.search(file.lower()) and not _is_data(filesystem, file)), None)
    if found and other is not None:
        raise SourceError(
            f"{name}: the directory holds {without_secrets(other)}, which is not read. If it has recipients, convert "
            f"it; otherwise move it away, or give a glob. Formats that are read: {READ}"
        )
    if not found:
        raise SourceError(
            f"{name}: the directory holds no file that is read. Convert other files, and name them by their format. "
            f"Formats that are read: {READ}"
        )
    return found


def _is_hidden(segment: str) -> bool:
    return segment.startswith(("_", ".")) or segment.endswith(_FOLDER_KEY)


def _unfollowed_link(filesystem: Any, glob: str) -> str | None:
    """Return a link to a directory into which a glob does not go, although it matches files there; None for none."""
    if not isinstance(filesystem, LocalFileSystem):
        return None  # the listings of others tell of no links
    named = glob.rstrip("/").split("/")
    for place in range(_first_wildcard(named), len(named) - 1):
        rest = "/".join(named[place if named[place] == "**" else place + 1 :])
        for match, info in sorted(filesystem.glob("/".join(named[: place + 1]), detail=True).items()):
            if info.get("islink") and _kind(filesystem, match) == "directory":
                below = filesystem.glob(f"{escape(match)}/{rest}")
                if not all(_is_passed_over(file, glob) for file in below):
                    return str(match)
    return None


def _first_wildcard(segments: list[str]) -> int:
    return next(place for place, segment in enumerate(segments) if _WILDCARD.search(segment))


def _is_passed_over(match: str, glob: str) -> bool:
    """Return whether a match of a glob is hidden, or lies in a hidden folder that the glob itself does not name."""
    named = glob.rstrip("/").split("/")
    fixed = _first_wildcard(named)
    *folders, name = match.rstrip("/").split("/")[fixed:] or [""]
    names_folder = any(map(_is_hidden, named[fixed:-1]))
    return _is_hidden(name) or (not names_folder and any(map(_is_hidden, folders)))


def _is_data(filesystem: Any, path: str) -> bool:
    """Return whether a file is data, not a note beside data; if in doubt it is, so that no recipients are left out."""
    name = path.rsplit("/", 1)[-1]
    if "." not in name or _format_of(name) is not None:
        return True
    with filesystem.open(path, "rb") as file:
        return bool(file.read(max(map(len, _MAGIC))).startswith(_MAGIC))
