"""The operator that texts a table of recipients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.assets import with_assets
from airflow_provider_sms.operators.campaign import CampaignOperator
from airflow_provider_sms.operators.rows import shielded_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context


MAX_CHUNK = 100
"""Messages a request: the service's own limit."""


class BulkSmsOperator(CampaignOperator):
    """Text a table of people, each exactly as often as intended.

    Every row is checked before the first request. Then each message is claimed in a durable ledger, posted, and its
    outcome recorded; a message that is claimed already in the campaign is not posted again, whichever try, task or run
    claimed it. See the delivery guarantees in the documentation.

    Returns a summary whose ``rows`` equals the sum of the seven counts after it; it and the XCom ``responses``, the raw
    answers in request order, are pushed when the task fails, too.

    :param source: recipients: a file, directory, glob or URI of Parquet or of CSV (``.csv``, ``.tsv``, also with
        ``.gz``, ``.bz2``, ``.zst``; every column is text); an asset whose URI names one, which becomes an inlet; a list
        of these; a pandas DataFrame; a ``pyarrow.Table``; a list of dicts; or an upstream task's result. (templated)
    :param message: the text; ``{first_name}`` stands for that column, ``{amount:.2f}`` formats it. None: see
        ``content_column``. (templated)
    :param content_column: the column with each row's text, in place of ``message``.
    :param destination_column: the column with the numbers.
    :param default_region: ISO 3166 code such as ``ZA``, completes numbers that are written nationally. None: every
        number must carry its country code.
    :param send_options: the service's Send Options, passed through. (templated)
    :param sms_conn_id: the connection. (templated)
    :param campaign: within it a message goes out at most once. None: ``{dag_id}.{task_id}.{run_id}``. (templated)
    :param key_columns: columns that identify a message beside its destination, for texts that change between tries.
        None: the text itself.
    :param on_invalid: ``fail``: rows that cannot be texted stop everything before the first request; ``skip``: they are
        counted and left out.
    :param on_unknown: what becomes of messages whose answer was lost. ``fail``: the task fails, and they are not sent
        again; ``resend``: they are, at the risk of texting people twice; ``ask``: the task waits, without a slot, for
        a person to decide in Airflow's required actions (Airflow 3.1 and newer).
    :param chunk_size: messages a request, 1 to 100.
    :param concurrency: requests in flight at once, at least 1.
    :param max_requests_per_second: None for no limit.
    :param max_xcom_responses: above that many requests, XComs hold how many there were in place of each.
    :param report: path or URI of a Parquet file that gets one row for each row of the source, in its order: ``row``,
        ``destination``, ``status``, ``reason``, ``request_id``, ``event_id``, ``sent_at``; written when the task fails,
        too, and replaced by the next try. None: no report. (templated)
    :param dry_run: check every row and send nothing.
    :param ledger_conn_id: an Airflow connection to PostgreSQL that holds the ledger. None: ``[sms] ledger_conn_id``,
        else a file of this machine. (templated)
    """

    template_fields: Sequence[str] = (
        "source",
        "message",
        "send_options",
        "campaign",
        "report",
        "sms_conn_id",
        "ledger_conn_id",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"send_options": "json"}
    ui_color = "#e3f2ee"

    def __init__(
        self,
        *,
        source: Any,
        message: str | None = None,
        content_column: str | None = None,
        destination_column: str = "destination",
        default_region: str | None = None,
        key_columns: Sequence[str] | None = None,
        on_invalid: str = "fail",
        chunk_size: int = MAX_CHUNK,
        concurrency: int = 4,
        max_requests_per_second: float | None = None,
        max_xcom_responses: int = 1000,
        report: str | None = None,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.message = message
        self.content_column = content_column
        self.destination_column = destination_column
        self.default_region = default_region
        self.key_columns = key_columns
        self.on_invalid = on_invalid
        self.chunk_size = chunk_size
        self.concurrency = concurrency
        self.max_requests_per_second = max_requests_per_second
        self.max_xcom_responses = max_xcom_responses
        self.report = report
        self.dry_run_only = dry_run

    @property
    def source(self) -> Any:
        """The recipients; rows in memory are wrapped, so that Airflow cannot show them."""
        return self._source

    @source.setter
    def source(self, value: Any) -> None:
        self._source = shielded_source(value)
        self.inlets = with_assets(self.inlets, value)

    def get_source(self, context: Context) -> Any:  # noqa: ARG002 - a task that computes its source needs it
        """Give the recipients of a try, as :attr:`source` holds them."""
        return self.source

    def check_arguments(self) -> None:
        """Refuse arguments that cannot be obeyed.

        :raises InputError: names the argument.
        """
        super().check_arguments()
        if self.on_invalid not in ("fail", "skip"):
            raise InputError(f"on_invalid must be 'fail' or 'skip', not {self.on_invalid!r}")
        for name, least, most in (
            ("chunk_size", 1, MAX_CHUNK),
            ("concurrency", 1, 1000),
            ("max_xcom_responses", 0, None),
        ):
            value = getattr(self, name)
            if type(value) is not int or value < least or (most is not None and value > most):
                limits = f"at least {least}" if most is None else f"{least} to {most}"
                raise InputError(f"{name} must be a whole number, {limits}, not {value!r}")
        if not isinstance(self.destination_column, str):
            raise InputError("destination_column must be the name of a column")
        rate = self.max_requests_per_second
        if rate is not None and not (type(rate) in (int, float) and rate > 0):
            raise InputError("max_requests_per_second must be a number above 0, or None for no limit")
        if self.report is not None and not (isinstance(self.report, str) and self.report.strip()):
            raise InputError("report must be the path or URI of a file to write, or None for no report")

    def send(self, context: Context, event: Mapping[str, Any] | None) -> dict[str, Any]:
        """Check every row, send, and give the summary.

        :param event: what a person answered, where this try asked one; None where not.
        """
        from airflow_provider_sms.operators.bulk_try import BulkTry

        return BulkTry(self, context, event).run()
