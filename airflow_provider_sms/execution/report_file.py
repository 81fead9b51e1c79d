"""The row report of an attempt: where it may be written, and how it is written."""

from __future__ import annotations

import logging
import os
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsspec.implementations.local import LocalFileSystem

from airflow_provider_sms.atomic_file import whole_file
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.errors import FailedError, describe, log_unforeseen
from airflow_provider_sms.execution.redaction import located
from airflow_provider_sms.hooks.ledger import refuse_ledger_file
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.recipients.paths import is_path, without_secrets
from airflow_provider_sms.reporting.row_report import write_row_report

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.messages.spool import CheckedSpool

log = logging.getLogger(__name__)

_LOCAL = re.compile(r"^(?:file|local):(?://)?(?=/)")
"""What precedes the path of a local file in its URI."""
_OTHER_FORM = re.compile(r"^file:(?://localhost)?(?=/[^/])")
"""The beginning of the other URIs of a local file (RFC 8089): ``file:/x`` and ``file://localhost/x``."""


def write_report(path: Any, spool: CheckedSpool, ledger: CampaignLedger | None, ended: str | None) -> Exception | None:
    """Write the report. A failure is logged and returned, since everything else is done by then.

    :param path: as :func:`report_path` returns it.
    :param ledger: None in a dry run.
    :param ended: why sending ended early; None if it did not.
    """
    shown = without_secrets(str(path))
    try:
        with whole_file(path) as file:
            write_row_report(file, spool, ledger=ledger, ended=ended)
    except Exception as error:  # noqa: BLE001  # storage can fail in any way
        log_unforeseen(error)
        words = f"The report could not be written to {shown}: {describe(error)}"
        log.error("%s", words)  # noqa: TRY400  # the traceback may quote a row
        then = "All else is done: the next attempt texts nobody twice, and writes the report"
        return FailedError(f"{words}. {then}", transient=True)
    log.info("Wrote the status of each row to %s", shown)
    return None


def report_path(report: str) -> Any:
    """Return the path to which a report is written: a local one, whose folder is created, or one of an object store."""
    report = _OTHER_FORM.sub("file://", report)
    if "://" in report:
        stored = located(report, "report")
        if not isinstance(stored.fs, LocalFileSystem):
            return stored
        report = stored.path  # else the file could be half written, and others could read it
    path = Path(_at_home(report)).absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        folder = mask_numbers_in(str(path.parent))
        raise InputError(f"report: the folder {folder} cannot be made: {error.strerror}") from None
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(
            f"report: {mask_numbers_in(str(path))} cannot be written; it must be a file in a folder that this task may "
            "write to"
        )
    refuse_ledger_file(path, "report")
    return path


def refuse_report_in(argument: str, report: Any, source: Any) -> None:
    """Refuse to write the report over the files that a task reads, or among them.

    Among those of ``suppress``, the next attempt would leave out everybody whom the report names.

    :param argument: what these files are, for the error: ``source`` or ``suppress list``.
    """
    for each in source if isinstance(source, (list, tuple)) else [source]:
        if not is_path(each):
            continue
        place, read = _resolved(report), _resolved(each)
        if place == read or place.startswith(read.rstrip("/") + "/") or fnmatch(place, read):
            raise InputError(
                f"report: {without_secrets(str(report))} would be written over the {argument}, or among its "
                "files. Choose another path"
            )


def _resolved(path: Any) -> str:
    text = _LOCAL.sub("", str(path))
    return text if "://" in text else str(Path(_at_home(text)).resolve())


def _at_home(path: str) -> str:
    """Return a path with the home folder in place of a tilde, as the paths of a source are read."""
    return os.path.expanduser(path)  # noqa: PTH111 - that of pathlib fails for an unknown user
