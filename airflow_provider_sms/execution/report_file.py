"""The row-level report of a try, where one is wanted."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.failures import describe
from airflow_provider_sms.execution.redaction import located
from airflow_provider_sms.operators.links import SmsReportLink, report_url
from airflow_provider_sms.reporting.row_report import whole_file, write_row_report

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.planning import PlanStep
    from airflow_provider_sms.ledger.campaign import CampaignLedger
    from airflow_provider_sms.operators.bulk import BulkSmsOperator
    from airflow_provider_sms.sending.counts import SeenRows


class ReportFile:
    """Writes what became of each row of a :class:`BulkSmsOperator`.

    :param task: whose arguments are rendered.
    :param plan: has the rows.
    """

    def __init__(self, task: BulkSmsOperator, context: Context, plan: PlanStep) -> None:
        self.path: Any = None
        """Where it is written; None: nowhere."""
        self.written: str | None = None
        """Where it was."""
        self._task = task
        self._context = context
        self._plan = plan
        self._error: Exception | None = None

    def read_argument(self) -> None:
        """Read where it is to be.

        :raises InputError: it cannot be there.
        """
        if self._task.report is not None:
            self.path = report_path(self._task.report)

    def write(
        self, seen: SeenRows, ledger: CampaignLedger | None, ended: str | None, *, nothing_sent: bool = False
    ) -> None:
        """Write it; what goes wrong is remembered, since all else is done.

        :param seen: the rows that were looked up.
        :param ledger: None where it cannot tell.
        :param ended: why sending ended early; None where it did not.
        """
        if self.path is None:
            return
        task = self._task
        source, preparation = self._plan.opened()
        try:
            with whole_file(self.path) as file:
                write_row_report(
                    file,
                    source,
                    preparation,
                    seen=seen,
                    suppressed=self._plan.suppressed,
                    ledger=ledger,
                    ended=ended,
                    nothing_sent=nothing_sent,
                )
        except Exception as error:  # noqa: BLE001  # storage can fail in any way
            self._error = error
            task.log_unforeseen(error)
            task.log.error("The report could not be written to %s: %s", task.report, describe(error))  # noqa: TRY400
        else:
            self.written = str(self.path)
            task.log.info("Wrote what became of each row to %s", self.written)
            if link := report_url(self.written):
                task.push(self._context, SmsReportLink.xcom_key, link)

    def require_written(self) -> None:
        """Fail where it could not be written.

        :raises AirflowException: says so.
        """
        if self._error is not None:
            raise AirflowException(
                f"The report could not be written to {self._task.report}: {describe(self._error)}. All else is done: "
                "the next try texts nobody twice, and writes it"
            )


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
