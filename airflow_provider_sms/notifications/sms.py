"""The notifier: texts a few people when something happens to a task or a DAG."""

from __future__ import annotations

import time
from bisect import bisect_right
from enum import Enum
from itertools import count
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseNotifier
from asgiref.sync import sync_to_async

from airflow_provider_sms.exceptions import (
    AuthenticationError,
    InputError,
    NotSentError,
    SmsError,
    TemplateError,
    ThrottledError,
)
from airflow_provider_sms.execution.hidden import KeepsTexts
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.masking import mask_number, mask_numbers_in
from airflow_provider_sms.messages.message import Message
from airflow_provider_sms.messages.parts import count_parts
from airflow_provider_sms.recipients.forms import read_region
from airflow_provider_sms.sending.outcomes import Backoff
from airflow_provider_sms.service.redaction import reported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse


DEFAULT_MESSAGE = (
    "Airflow: "
    "{% if reason %}DAG {{ dag.dag_id }}: {{ reason[:] | replace('_', ' ') }}"
    "{% elif ti %}{{ ti.dag_id }}.{{ ti.task_id }}"
    "{% if ti.map_index is number and ti.map_index >= 0 %}[{{ ti.map_index }}]{% endif %}"
    # A task whose process died has no state. Slices of enumerations are plain text.
    " {{ (ti.state | default('failed', true))[:] | replace('_', ' ') }}, try {{ ti.try_number }}"
    "{% elif deadline %}DAG {{ dag_run.dag_id }} missed its deadline of "
    "{{ (deadline.deadline_time | string)[:16] | replace('T', ' ') }} UTC"
    "{% else %}DAG {{ dag.dag_id }}{% endif %}"
    ", run {{ run_id or dag_run.dag_run_id }}"
)
"""The template of a text whose author wrote none: a task, a DAG and a deadline call with different contexts."""
_MISSING = dict.fromkeys(("exception", "reason", "ti", "deadline", "run_id"))
"""Variables that not all callbacks have, which are None then."""
_ELLIPSIS = "..."
"""Three full stops: the single character for them is not in the GSM alphabet, and would double the price of a text."""


class SmsNotifier(KeepsTexts, BaseNotifier):
    """Text a few people when something happens: as the callback of a task, of a DAG, or of a deadline.

    Everybody gets the same text, in one request. A failure to text never fails the task: it is logged, with advice on
    what to do about it. A request that was certainly not processed is made up to three times; a request that may have
    been sent is never repeated. There is no ledger: a callback that runs twice texts twice.

    :param message: the text. None means a text that says what happened to which task or DAG in which run. (templated)
    :param to: one number or several, at most 100, as a list or as text with commas. A number that is given twice is
        texted once; a number that cannot be read is logged and left out. (templated)
    :param sms_conn_id: the connection. (templated)
    :param send_options: the service's Send Options, passed through; None means none. (templated)
    :param max_parts: the most SMS parts that the text may take, at least 1; a longer text is cut and ends with three
        full stops.
    :param default_region: the country of numbers that are written without a country code, as an ISO 3166 alpha-2 code
        such as ``"ZA"``, in capitals or not. None means that every number has its country code.
    :raises InputError: ``max_parts`` or ``default_region`` cannot be used.
    """

    template_fields: Sequence[str] = ("message", "to", "sms_conn_id", "send_options")

    def __init__(
        self,
        message: str | None = None,
        *,
        to: str | int | Sequence[str | int],
        sms_conn_id: str = SmsHook.default_conn_name,
        send_options: Mapping[str, Any] | None = None,
        max_parts: int = 2,
        default_region: str | None = None,
        **kwargs: Any,
    ) -> None:
        if type(max_parts) is not int or max_parts < 1:
            raise InputError(f"max_parts must be a whole number, at least 1, not {max_parts!r}")
        if default_region is not None:
            read_region(default_region)
        super().__init__(**kwargs)  # the context, which Airflow may pass
        self.message = DEFAULT_MESSAGE if message is None else message
        self.to = to
        self.sms_conn_id = sms_conn_id
        self.send_options = send_options
        self.max_parts = max_parts
        self.default_region = default_region
        self._sleep: Callable[[float], None] = time.sleep

    def render_template_fields(self, context: Context, jinja_env: Any = None) -> None:
        """Leave the fields unrendered: each call renders them for its own context."""

    def notify(self, context: Context) -> None:
        """Text, and wait for the response; never raise.

        :param context: as Airflow passes it to a callback.
        """
        # No traceback is logged: it may quote the text and the numbers.
        try:
            self._text(context)
        except SmsError as error:
            sent = "may have been sent, and is not sent again" if error.may_have_been_sent else "was not sent"
            self.log.error("The alert %s: %s", sent, error)  # noqa: TRY400
        except Exception as error:  # noqa: BLE001 - a failing alert must not fail the task that it reports
            # Without its words, which may quote anything.
            place = extract_tb(error.__traceback__)[-1]
            where = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
            self.log.error("The alert was not sent: %s", where)  # noqa: TRY400

    async def async_notify(self, context: Context) -> None:
        """Text from within an event loop, as in the triggerer; never raise.

        :param context: as Airflow passes it to a callback.
        """
        # Not asyncio.to_thread: reading a variable or a connection must be able to call back into this event loop.
        await sync_to_async(self.notify, thread_sensitive=False)(context)

    def _text(self, context: Context) -> None:
        fields = self._rendered(context)
        text = self._written(fields["message"])
        messages = [Message(text, number) for number in self._people(fields["to"])]
        settings = SmsHook(fields["sms_conn_id"]).get_settings()
        try:
            with settings.client() as client:
                response = self._post(client, messages, fields["send_options"])
        except AuthenticationError as error:
            advice = f"Put valid credentials into connection {settings.conn_id!r}"
            raise AuthenticationError(f"{error}. {advice}") from None
        outcome = f"event {response.event_id}, parts {response.parts}, cost {response.cost}"
        if response.messages >= len(messages):
            people = ", ".join(mask_number(message.destination) for message in messages)
            self.log.info("The alert was sent to %s: %s", people, outcome)
            return
        self.log.error(
            "The service took %d of %d %s of the alert: %s. Its error report: %s",
            response.messages,
            len(messages),
            by_count(len(messages), "message"),
            outcome,
            reported(response.error_report, [text]),
        )

    def _rendered(self, context: Context) -> dict[str, Any]:
        """Return the value of each template field; its error names the field and the reason, not the template.

        The base class would replace the templates with the values of the first call, for all later calls in the same
        process, and log a list of numbers of which one cannot be rendered. ``var.value``, which Airflow leaves out for
        deadlines and for some callbacks of DAGs, and the variables that only some callbacks have, are in all.
        """
        from airflow.sdk.execution_time.context import VariableAccessor

        variables = {"value": VariableAccessor(deserialize_json=False)}
        values: Any = {"var": variables, **_MISSING, **context}
        # In ``dag.test()`` the DAG of a DAG's callback is a copy without an environment.
        dag = context.get("dag")
        environment = self.get_template_env(dag=dag if hasattr(dag, "get_template_env") else None)
        fields = {}
        for field in self.template_fields:
            try:
                fields[field] = self.render_template(getattr(self, field), values, environment)
            except Exception as error:  # noqa: BLE001 - a template may call anything
                raise TemplateError(f"the template of {field} cannot be rendered: {_reason(error)}") from None
        return fields

    def _written(self, message: Any) -> str:
        # An error names a file that is not UTF-8 with halves of characters, which no request can hold.
        text = str(message).encode("utf-8", "replace").decode().strip()
        if not text:
            raise InputError("message is empty")
        return truncate(text, self.max_parts)

    def _people(self, to: Any) -> list[str]:
        numbers, rejected = parse_recipients(to, self.default_region)
        for number, reason in rejected:
            self.log.error("A recipient of the alert is left out: %s: %s", mask_number(number), reason)
        if not numbers:
            raise InputError("to has no number that can be texted")
        return numbers

    def _post(self, client: SmsClient, messages: list[Message], send_options: Any) -> SendResponse:
        backoff, attempts = Backoff(attempts=3, longest_retry_after=10.0), count(1)
        while True:
            try:
                return client.send_bulk(messages, send_options=send_options)
            except (NotSentError, ThrottledError) as error:
                if (wait := backoff.wait(next(attempts), error.retry_after)) is None:
                    raise
                self.log.warning("Sending the alert again, since it was not processed: %s", error)
                self._sleep(wait)


def _reason(error: Exception) -> str:
    """Return the type of an error, with its message if that is known to quote no value."""
    from jinja2 import TemplateError as JinjaError

    kind = type(error).__name__
    if isinstance(error, JinjaError) and error.message:
        return f"{kind}: {mask_numbers_in(error.message)}"
    # Errors of Airflow hold a code from a fixed list, such as VARIABLE_NOT_FOUND.
    code = getattr(getattr(error, "error", None), "error", None)
    return f"{kind}: {code.value}" if isinstance(code, Enum) else kind


_AROUND_ITEMS = "[]'\""
"""The characters around the items of a list, as Python and JSON write it."""


def parse_recipients(to: Any, default_region: str | None) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the numbers of a few people, each once, as digits with country code, and rejected ones with their reasons.

    :param to: one number or several, also as text with commas between them, or as the text of a list, to which a
        template renders one.
    """
    from airflow_provider_sms.recipients.numbers import read_number

    entries = to if isinstance(to, (list, tuple, set)) else [to]
    items = [item.strip().strip(_AROUND_ITEMS).strip() for entry in entries for item in str(entry).split(",")]
    region = None if default_region is None else read_region(default_region)
    read = {item: read_number(item, region) for item in items if item}
    digits = [number.digits for number in read.values() if number.digits is not None]
    return list(dict.fromkeys(digits)), [(item, number.reason) for item, number in read.items() if number.reason]


def truncate(text: str, parts: int) -> str:
    """Return a text, cut to a number of SMS parts; a text that is cut ends with three full stops."""
    if count_parts(text) <= parts:
        return text
    # More characters never take fewer parts, so the longest beginning that fits can be found by bisection.
    end = bisect_right(range(len(text)), parts, key=lambda length: count_parts(text[:length] + _ELLIPSIS)) - 1
    return text[:end].rstrip() + _ELLIPSIS


send_sms_notification = SmsNotifier
