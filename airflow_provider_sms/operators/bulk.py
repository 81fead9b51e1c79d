"""The operator that texts a table of recipients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_sms.arguments import flag
from airflow_provider_sms.execution.hidden import redacted_source, with_assets
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.messages.message import MAX_MESSAGES
from airflow_provider_sms.operators.base import SmsOperatorBase
from airflow_provider_sms.operators.options import BulkOptions, check_loaded
from airflow_provider_sms.planning.limits import Limits
from airflow_provider_sms.recipients.paths import is_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.operators.options import OnInvalid, OnLowBalance, OnUnknown
    from airflow_provider_sms.send_window.window import SendWindow


class BulkSmsOperator(SmsOperatorBase):
    """Text the people in a table, each message at most once in its campaign, unless unknown messages are sent again.

    Every row is checked before the first request, and a plan of the whole send is logged and pushed as the XCom
    ``plan``. Each message is then claimed in a durable ledger and posted, and its outcome is recorded; a message
    already claimed in the campaign is not posted again, whichever attempt, task or run claimed it. See the delivery
    guarantees in the documentation.

    Returns a summary whose ``rows`` is the sum of the seven counts that follow it. Once every row has
    been checked, the summary and the XCom ``responses``, the service's responses in request order, are pushed even when
    the task fails.

    :param source: recipients: a file, directory, glob or URI of Parquet, Arrow or Feather (``.arrow``, ``.feather``),
        CSV (``.csv``, ``.tsv``; every column is text) or JSON lines (``.jsonl``, ``.ndjson``), the latter two also
        with ``.gz``, ``.bz2``, ``.zst``; an asset whose URI names one, which becomes an inlet; a list of these; a
        :class:`~airflow_provider_sms.operators.sms.SqlSource`; a DataFrame of pandas or polars, a ``pyarrow.Table``,
        or any object with Arrow's C stream interface; a list, or an iterator, of dicts; a number as text, or a list of
        numbers, which become ``destination_column``; or an upstream task's result. (templated)
    :param destination_column: the column with the numbers.
    :param default_region: the country of numbers that are written without a country code, as an ISO 3166 code such as
        ``ZA``, in capitals or not. None means that every number must carry its country code.
    :param suppress: numbers not to text, in any form that ``source`` takes, such as a file of opt-outs or reports of
        earlier sends; a table has them in ``destination_column``, in its only column, or in the only one that can hold
        them. None means that no number is suppressed. (templated)
    :param on_invalid: ``fail``: rows that cannot be texted stop everything before the first request; ``skip``: they are
        counted and left out.
    :param message: the text; ``{first_name}`` stands for the value of that column, and ``{amount:.2f}`` formats it.
        ``{% include "welcome.txt" %}`` is the text of a file, which is looked up as Airflow looks up templates. None
        means that ``content_column`` has the texts. (templated)
    :param content_column: the column with each row's text, in place of ``message``.
    :param send_options: the service's Send Options, passed through. (templated)
    :param campaign: the campaign's name; within a campaign a message goes out at most once. None means
        ``{dag_id}/{task_id}/{run_id}``. (templated)
    :param key_columns: columns that, together with the destination, identify a message whose text may change between
        attempts. None means that the text identifies it.
    :param limits: the most that the plan may have, and the least: a
        :class:`~airflow_provider_sms.operators.sms.Limits`, or a dict of the same; beyond them nothing is sent. None
        means no limit. (templated)
    :param cost_per_part: credits that the estimate counts for an SMS part: a number, or numbers by the first digits of
        the destination, ``{"27": 1, "44": 2.5, "": 3}``, where the longest match counts, and ``""`` stands for all
        others.
    :param on_low_balance: what happens if a pre-paid account has less than the send costs, by estimate. ``send``: it
        goes on until the service refuses; ``fail``: nothing is sent; ``wait``: before the first request and during the
        send, the task gives up its slot until the balance covers the rest.
    :param approved_plan: the ``id`` in the XCom ``plan`` of a task with ``dry_run=True``, which somebody has approved:
        another table, campaign or ``send_options``, more messages or a higher cost are refused, and nothing is sent.
        Needs ``campaign``. None means that any plan may be sent. (templated)
    :param send_window: the hours in which messages may go out, a
        :class:`~airflow_provider_sms.operators.sms.SendWindow`; outside them, the task gives up its slot until they
        begin. None means at any hour.
    :param dry_run: check every row, make the plan, and send nothing. (templated)
    :param chunk_size: messages in a request, 1 to 100.
    :param concurrency: requests in flight at once, at least 1.
    :param max_requests_per_second: requests of this task per second, above 0. None means no limit.
    :param on_unknown: what happens to messages whose response was lost. ``fail``: the task fails, and they are not sent
        again; ``reconcile``: the task closes the requests whose outcome the balance tells, and fails for the rest: a
        request that was charged for counts as accepted, and one that was not is sent again. This assumes that a
        pre-paid account is charged when the service takes a request, and that nobody else spends from it meanwhile,
        which is checked as far as the figures allow; ``resend``: they are sent again, at the risk of texting people
        twice.
    :param report: path or URI of a Parquet file, as text or as a path object. It gets one row for each row of the
        source, in the same order: ``row``, ``destination``, ``status``, ``reason``, ``request_id``, ``event_id``,
        ``sent_at``; written even when the task fails, and replaced by the next attempt. Its name may not have the
        suffix of another format, such as ``.csv``. None means no report. (templated)
    :param sms_conn_id: the connection to send with. (templated)
    :param ledger_conn_id: an Airflow connection to PostgreSQL that holds the ledger. None means ``[sms]
        ledger_conn_id``, else a file on this machine. (templated)
    """

    template_fields: Sequence[str] = (
        "source",
        "message",
        "send_options",
        "campaign",
        "report",
        "suppress",
        "sms_conn_id",
        "ledger_conn_id",
        "dry_run",
        "limits",
        "approved_plan",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"send_options": "json"}
    ui_color = "#e3f2ee"
    options_model = BulkOptions
    computes_source: ClassVar[bool] = False
    """Whether :meth:`get_source` computes the recipients, and ``source`` may be None."""
    dry_run: bool | str  # type: ignore[assignment]  # it hides a method of Airflow's that only renders templates

    def __init__(
        self,
        *,
        # Whom does it text?
        source: Any,
        destination_column: str = "destination",
        default_region: str | None = None,
        suppress: Any = None,
        on_invalid: OnInvalid = "fail",
        # What does it send?
        message: str | None = None,
        content_column: str | None = None,
        send_options: dict[str, Any] | None = None,
        campaign: str | None = None,
        key_columns: Sequence[str] | None = None,
        # What holds before it sends?
        limits: Limits | Mapping[str, Any] | None = None,
        cost_per_part: float | Mapping[str, float] = 1,
        on_low_balance: OnLowBalance = "send",
        approved_plan: str | None = None,
        send_window: SendWindow | None = None,
        dry_run: bool | str = False,
        # How does it send?
        chunk_size: int = MAX_MESSAGES,
        concurrency: int = 4,
        max_requests_per_second: float | None = None,
        on_unknown: OnUnknown = "fail",
        # What comes back?
        report: str | PathLike[str] | None = None,
        # Which account and ledger?
        sms_conn_id: str = SmsHook.default_conn_name,
        ledger_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            send_options=send_options,
            campaign=campaign,
            on_unknown=on_unknown,
            sms_conn_id=sms_conn_id,
            ledger_conn_id=ledger_conn_id,
            **kwargs,
        )
        self.source = source
        self.destination_column = destination_column
        self.default_region = default_region
        self.on_invalid = on_invalid
        self.suppress = suppress
        self.message = message
        self.content_column = content_column
        self.key_columns = key_columns
        self.chunk_size = chunk_size
        self.concurrency = concurrency
        self.max_requests_per_second = max_requests_per_second
        self.dry_run = dry_run
        # Airflow renders templates in a dict.
        self.limits = limits.given if isinstance(limits, Limits) else limits
        self.cost_per_part = cost_per_part
        self.on_low_balance = on_low_balance
        self.approved_plan = approved_plan
        self.send_window = send_window
        self.report = report
        check_loaded(self, self.options_model)

    @property
    def source(self) -> Any:
        """The recipients; rows in memory are wrapped, so that Airflow cannot show them."""
        return self._source

    @source.setter
    def source(self, value: Any) -> None:
        self._source = redacted_source(value)
        self.inlets = with_assets(self.inlets, value)

    @property
    def suppress(self) -> Any:
        """The numbers not to text; wrapped like :attr:`source`."""
        return self._suppress

    @suppress.setter
    def suppress(self, value: Any) -> None:
        self._suppress = redacted_source(value)
        self.inlets = with_assets(self.inlets, value)

    @property
    def report(self) -> Any:
        """The path of the report; that of a path object as text, since Airflow renders templates in no other."""
        return self._report

    @report.setter
    def report(self, value: Any) -> None:
        self._report = str(value) if is_path(value) else value

    def get_source(self, context: Context) -> Any:  # noqa: ARG002 - a task that computes its source needs it
        """Return the recipients of an attempt, as :attr:`source` holds them."""
        return self.source

    def send(self, context: Context, event: Any) -> dict[str, Any]:
        """Check every row, send, and return the summary."""
        from airflow_provider_sms.execution.bulk import plan_table, text_table

        try:
            is_dry_run = flag(self.dry_run)
        except ValueError:
            is_dry_run = False  # read_options raises the error, once the attempt has left its trace in the ledger
        return plan_table(self, context) if is_dry_run else text_table(self, context, event)
