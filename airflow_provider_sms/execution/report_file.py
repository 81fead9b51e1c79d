"""The row report of an attempt: where it may be written, and how it is written."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fsspec.implementations.local import LocalFileSystem

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.errors import FailedError, describe, log_unforeseen
from airflow_provider_sms.execution.hidden import located
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.recipients.paths import is_path, without_secrets
from airflow_provider_sms.reporting.row_report import write_row_report

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.messages.spool import CheckedSpool

log = logging.getLogger(__name__)


def write_report(path: Any, spool: CheckedSpool, ledger: CampaignLedger | None, ended: str | None) -> Exception | None:
    """Write the report, as :func:`write_row_report` does; log and return an error, since all else is done by then."""
    shown = without_secrets(str(path))
    try:
        with tempfile.TemporaryFile() as file:
            write_row_report(file, spool, ledger, ended)
            file.seek(0)
            _publish(file, path)
    except Exception as error:  # noqa: BLE001  # storage can fail in any way
        log_unforeseen(error)
        words = f"The report could not be written to {shown}: {describe(error)}"
        log.error("%s", words)  # noqa: TRY400  # the traceback may quote a row
        then = "All else is done: the next attempt texts nobody twice, and writes the report"
        return FailedError(f"{words}. {then}", transient=True)
    log.info("Wrote the status of each row to %s", shown)
    return None


def _publish(file: IO[bytes], path: Any) -> None:
    """Copy a whole report to its place; on a local disk it appears whole or not at all, for its owner alone."""
    if hasattr(path, "fs"):  # in older versions of Airflow a path of an object store is a Path, too
        with path.open("wb") as there:
            shutil.copyfileobj(file, there)
        return
    descriptor, name = tempfile.mkstemp(".partial", f".{path.name}.", path.parent)
    try:
        with os.fdopen(descriptor, "wb") as there:
            shutil.copyfileobj(file, there)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def report_path(report: str, source: Any, suppress: Any) -> Any:
    """Return the path to which a report is written: a local one, whose folder is created, or one of an object store."""
    given = [each for some in (source, suppress) for each in (some if isinstance(some, (list, tuple)) else [some])]
    place = _resolved(report)
    for read in (_resolved(each).rstrip("/") for each in given if is_path(each)):
        if place == read or place.startswith(f"{read}/") or fnmatch(place, read):  # the next attempt would read it
            raise InputError(
                f"report: {without_secrets(report)} would be written over the source or the suppress list, or among "
                "their files. Choose another path"
            )
    local = _local(report)
    if local is None:
        return located(report, "report")
    path = Path(local)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()  # for root, nothing else tells
        can_be_written = not path.is_dir()
    except OSError:
        can_be_written = False
    if not can_be_written:
        raise InputError(
            f"report: {mask_numbers_in(str(path))} cannot be written; it must be a file in a folder that this task may "
            "make or write to"
        )
    return path


def _resolved(path: Any) -> str:
    local = _local(str(path))
    return str(path) if local is None else os.path.realpath(local)


def _local(path: str) -> str | None:
    """Return the absolute path of a local file, also of its URI and one with a tilde; None for any other URI."""
    scheme, is_uri, _ = path.partition("://")
    if is_uri and scheme not in ("file", "local"):
        return None
    return str(LocalFileSystem._strip_protocol(path))  # noqa: SLF001  # each file system of fsspec has it
