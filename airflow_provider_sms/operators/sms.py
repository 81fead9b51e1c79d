"""Operators that send: a table of recipients, or a text to groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_sms.exceptions import InputError, SmsError
from airflow_provider_sms.operators.campaign import CampaignOperator, for_xcom, responses_of
from airflow_provider_sms.operators.rows import located, shielded_source
from airflow_provider_sms.sending.stop import StopSignal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.messages.prepare import Preparation
    from airflow_provider_sms.messages.sources import Source
    from airflow_provider_sms.sending.backlog import Outgoing
    from airflow_provider_sms.sending.ledger import CampaignLedger
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse

MAX_CHUNK = 100
"""Messages a request: the service's own limit."""


class BulkSmsOperator(CampaignOperator):
    """Text a table of people, each exactly as often as intended.

    Every row is checked before the first request. Then each message is claimed in a durable ledger, posted, and its
    outcome recorded; a message that is claimed already in the campaign is not posted again, whichever try, task or run
    claimed it. See the delivery guarantees in the documentation.

    Returns a summary whose ``rows`` equals the sum of the seven counts after it; it and the XCom ``responses``, the raw
    answers in request order, are pushed when the task fails, too.

    :param source: recipients: a Parquet file, directory, glob or URI, or a list of these; a pandas DataFrame; a
        ``pyarrow.Table``; a list of dicts; or an upstream task's result. (templated)
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
        again; ``resend``: they are, at the risk of texting people twice; ``ask`` is not available yet.
    :param chunk_size: messages a request, 1 to 100.
    :param concurrency: requests in flight at once, at least 1.
    :param max_requests_per_second: None for no limit.
    :param max_xcom_responses: above that many requests, XComs hold how many there were in place of each.
    :param report: None; a row-level report is not available yet. (templated)
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
        if self.report is not None:
            raise InputError("report is not available in this version: the ledger holds what was sent")

    def execute(self, context: Context) -> dict[str, Any]:
        """Check every row, send, and give the summary.

        :raises AirflowFailException: where a retry could not help.
        :raises AirflowException: where it could.
        """
        from airflow_provider_sms.sending.options import SendingOptions
        from airflow_provider_sms.sending.report import one_line, summarise
        from airflow_provider_sms.sending.table import (
            CheckedTable,
            check_table,
            outgoing_blocks,
            require_sendable,
        )
        from airflow_provider_sms.sending.tally import Tally

        table = CheckedTable()
        tally = Tally()

        def summary() -> dict[str, Any]:
            return summarise(self.campaign_name(context), table.rows, table.invalid, tally)

        self.stop_signal = StopSignal()
        try:
            self.check_arguments()
            tally.max_event_ids = self.max_xcom_responses
            settings = None if self.dry_run_only else self.get_settings()
            source, preparation = self._open()
            self.log.info("Checking every row of %s", source.describe())
            check_table(source, preparation, table, self.stop_signal)
            require_sendable(table, skip_invalid=self.on_invalid == "skip")
        except Exception as error:  # noqa: BLE001  # a source can fail in any way, and its words may quote a row
            self.log_unforeseen(error)
            self.push(context, "return_value", summary())
            self.raise_for(error)
        if table.invalid:
            self.log.warning("Left out: %s", table.explain())
        if settings is None:
            self.log.info("Nothing is sent in a dry run: %d messages are ready", table.rows - table.invalid)
            return summary()

        def post(client: SmsClient, messages: Sequence[Outgoing]) -> SendResponse:
            pairs = [{"Content": m.content, "Destination": str(m.destination)} for m in messages]
            return client.send_bulk(pairs, send_options=self.send_options)

        def finish(ledger: CampaignLedger) -> None:
            self.push(context, "return_value", summary())
            responses = responses_of(ledger, self.max_xcom_responses)
            self.push(context, "responses", responses)
            if isinstance(responses, dict):
                self.log.info("The %d answers are too many for an XCom: the ledger has them", responses["requests"])
            self.log.info("%s", one_line(summary()))

        try:
            self.deliver(
                context,
                settings,
                outgoing_blocks(source, preparation, table),
                post,
                total=table.rows - table.invalid,
                options=SendingOptions(
                    chunk_size=self.chunk_size,
                    concurrency=self.concurrency,
                    max_requests_per_second=self.max_requests_per_second,
                    resend_unknown=self.on_unknown == "resend",
                ),
                kind="bulk",
                tally=tally,
                finish=finish,
            )
        except SmsError as error:
            self.push(context, "return_value", summary())
            self.raise_for(error)
        return summary()

    def _open(self) -> tuple[Source, Preparation]:
        from airflow_provider_sms.messages.prepare import Preparation
        from airflow_provider_sms.messages.sources import open_source

        preparation = Preparation(
            message=self.message,
            content_column=self.content_column,
            destination_column=self.destination_column,
            default_region=self.default_region,
            key_columns=self.key_columns,
        )
        return open_source(located(self.source)), preparation


class GroupSmsOperator(CampaignOperator):
    """Text groups that the service knows, once.

    A retry never texts a group twice: the send is claimed in the ledger first, as one of
    :class:`BulkSmsOperator` is. Returns the raw answer, also when an earlier try or run of the campaign sent it; the
    XCom ``responses`` is a list with it.

    :param message: the text. (templated)
    :param groups: at least one name. (templated)
    :param send_options: the service's Send Options, passed through. (templated)
    :param sms_conn_id: the connection. (templated)
    :param campaign: within it the text goes to the groups at most once. None: ``{dag_id}.{task_id}.{run_id}``.
        (templated)
    :param on_unknown: what becomes of a send whose answer was lost. ``fail``: the task fails, and it is not sent again;
        ``resend``: it is, at the risk of texting people twice; ``ask`` is not available yet.
    :param ledger_conn_id: an Airflow connection to PostgreSQL that holds the ledger. None: ``[sms] ledger_conn_id``,
        else a file of this machine. (templated)
    """

    template_fields: Sequence[str] = (
        "message",
        "groups",
        "send_options",
        "campaign",
        "sms_conn_id",
        "ledger_conn_id",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"send_options": "json"}
    ui_color = "#e3f2ee"

    def __init__(self, *, message: str, groups: Sequence[str] | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message
        self.groups = groups

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Send, and give the raw answer.

        :raises AirflowFailException: where a retry could not help.
        :raises AirflowException: where it could.
        """
        from airflow_provider_sms.messages.groups import group_key
        from airflow_provider_sms.sending.backlog import Outgoing
        from airflow_provider_sms.sending.options import SendingOptions
        from airflow_provider_sms.sending.tally import Tally

        answers: list[dict[str, Any]] = []
        self.stop_signal = StopSignal()
        try:
            self.check_arguments()
            groups = self._group_names()
            key = group_key(self.message, groups)

            def post(client: SmsClient, _: Sequence[Outgoing]) -> SendResponse:
                return client.send_group(self.message, groups, send_options=self.send_options)

            def finish(ledger: CampaignLedger) -> None:
                body = ledger.response_to(key)
                if body is not None:
                    answers.append(for_xcom(body))
                    self.push(context, "responses", answers)

            tally = Tally()
            self.deliver(
                context,
                self.get_settings(),
                [[Outgoing(key, None, self.message)]],
                post,
                total=1,
                options=SendingOptions(chunk_size=1, concurrency=1, resend_unknown=self.on_unknown == "resend"),
                kind="group",
                tally=tally,
                finish=finish,
            )
        except SmsError as error:
            self.raise_for(error)
        if tally.already_sent:
            self.log.info("The campaign had sent this text to these groups already; it was not sent again")
        return answers[0] if answers else None

    def _group_names(self) -> list[str]:
        groups = [self.groups] if isinstance(self.groups, str) else list(self.groups)
        if not groups or not all(isinstance(name, str) and name.strip() for name in groups):
            raise InputError("groups must be at least one group's name, and no name may be empty")
        if not isinstance(self.message, str) or not self.message.strip():
            raise InputError("message must be a text that is not empty")
        return groups
