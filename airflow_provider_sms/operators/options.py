"""The arguments of tasks, as pydantic models, and their checks.

These need no slow import, no connection, and nothing of the machine on which the task will run: the values that
no template renders are checked when Airflow loads the DAG, and all of them once they are rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from airflow_provider_sms.arguments import LATER, Arguments, flag, form_of
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.hidden import Rows, is_to_be_rendered
from airflow_provider_sms.hooks.sql_source import SqlSource
from airflow_provider_sms.ledger.name_rules import read_name
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.messages.arguments import Field as ColumnField
from airflow_provider_sms.messages.arguments import check_columns, check_message, read_groups
from airflow_provider_sms.messages.message import MAX_MESSAGES
from airflow_provider_sms.planning.approved_plan import PlanId
from airflow_provider_sms.planning.limits import Limits
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.recipients.forms import explain_other, is_rows, read_region
from airflow_provider_sms.recipients.paths import PARQUET, DataFile
from airflow_provider_sms.recipients.values import is_missing, tidy_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

OnInvalid: TypeAlias = Literal["fail", "skip"]
OnLowBalance: TypeAlias = Literal["send", "fail", "wait"]
OnUnknown: TypeAlias = Literal["fail", "reconcile", "resend"]

MAX_CONCURRENCY = 1000
"""Requests in flight at once, each with a thread of its own."""


def _text(value: Any, info: ValidationInfo) -> Any:
    """Refuse a text or name that is of another type: ``1e5`` may have become 100000.0 before it came here."""
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if each is not None and each is not LATER and not isinstance(each, str):
            raise InputError(
                f"{info.field_name} must be text, not {type(each).__name__}. A value from another task, or from a "
                "template with render_template_as_native_obj, keeps its type, and does not tell how it was written: "
                "pass it as text"
            )
    return value


def _optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


def _checked(check: Callable[[Any], object]) -> AfterValidator:
    """Return what refuses a value by a function that raises an error with words of its own."""

    def keep(value: Any) -> Any:
        check(value)
        return value

    return AfterValidator(keep)


def _send_options(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InputError("send_options must be a dict of the service's Send Options, or None")
    import orjson

    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        # The error's own text names a type, never a value.
        raise InputError(f"send_options cannot be written as JSON: {error}") from None
    return value


def _report(value: Any) -> Any:
    if value is None:
        return None
    if not (isinstance(value, str) and value.strip()):
        raise InputError("report must be the path or URI of a file to write, or None for no report")
    if is_missing(tidy_text(value)):
        raise InputError(f"report is {value!r}: was there no value to render it from?")
    file = DataFile(None, value.rstrip("/ "))
    if file.format != PARQUET:
        raise InputError(
            f"report is written as Parquet, so its name may not end with .{file.ending}: use a name that ends with "
            ".parquet"
        )
    return value


def _source(value: Any, info: ValidationInfo) -> Any:
    """Refuse values that cannot be recipients, queries without a statement, and None."""
    argument = str(info.field_name)
    if value is None and argument == "source":
        raise InputError(f"source: {explain_other(value)}")
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(each, SqlSource) and not is_to_be_rendered(each.sql):
            each.require_statement(argument)
        elif isinstance(each, str) and is_missing(each.strip()):
            raise InputError(f"{argument} is {each!r}: was there no value to render it from?")
        elif isinstance(each, str) and not each.strip():
            raise InputError(f"{argument}: {explain_other(each)}")
        # Text in it is rows that a template wrote out; the task's own error says what to do about that.
        elif isinstance(each, Rows) and not (isinstance(each.data, str) or is_rows(each.data)):
            raise InputError(f"{argument}: {explain_other(each.data)}")
    return value


def _limits(value: Any) -> Limits:
    if value is None:
        return Limits()
    if not isinstance(value, Mapping):
        raise InputError(f"limits must be Limits(...), a dict of them, or None, not {form_of(value)}")
    limits = Limits(**value)
    for name, limit in limits.given.items():
        if limit is not LATER and isinstance(limit, str):
            raise InputError(f"limits: {name} is a template that was not rendered: {form_of(limit)}")
    return limits


def _group_message(message: Any) -> str:
    """Return the text, tidied; it has the syntax of ``BulkSmsOperator``, without columns."""
    pieces = check_message(message)
    for piece in pieces:
        if isinstance(piece, ColumnField):
            raise InputError(
                f"message: {mask_numbers_in(f'{{{piece.column}}}')} names a column, and the text goes to groups, which "
                "have none: use BulkSmsOperator with a table of the people. Write a literal brace twice"
            )
    return tidy_text("".join(map(str, pieces)))


SmsConnection: TypeAlias = Annotated[
    str, Field(strict=True, pattern=r"\S", description="the id of a connection of type sms, such as 'sms_default'")
]
LedgerConnection: TypeAlias = Annotated[
    Annotated[str, Field(strict=True, pattern=r"\S")] | None,
    Field(description="the id of a connection of type postgres, or None for the configured ledger"),
]
Whole: TypeAlias = Annotated[int, Field(strict=True)]


class SendingOptions(Arguments):
    """The arguments of all operators that send."""

    send_options: Annotated[Any, BeforeValidator(_send_options)]
    campaign: Annotated[Any, AfterValidator(_optional(read_name)), BeforeValidator(_text)]
    on_unknown: OnUnknown = Field(description="one of fail, reconcile, resend")
    sms_conn_id: SmsConnection
    ledger_conn_id: LedgerConnection


class BulkOptions(SendingOptions):
    """The checked arguments of a :class:`BulkSmsOperator`, with the same meanings."""

    kind: ClassVar[str] = "bulk"

    source: Annotated[Any, AfterValidator(_source)]
    message: Annotated[Any, _checked(_optional(check_message)), BeforeValidator(_text)]
    content_column: Any
    destination_column: Any
    default_region: Annotated[Any, _checked(_optional(read_region))]
    cost_per_part: Annotated[Any, _checked(Prices)]
    key_columns: Any
    on_invalid: OnInvalid = Field(description="'fail' or 'skip'")
    suppress: Annotated[Any, AfterValidator(_source)]
    chunk_size: Whole = Field(ge=1, le=MAX_MESSAGES, description=f"a whole number, 1 to {MAX_MESSAGES}")
    concurrency: Whole = Field(ge=1, le=MAX_CONCURRENCY, description=f"a whole number, 1 to {MAX_CONCURRENCY}")
    max_requests_per_second: float | None = Field(
        gt=0, strict=True, allow_inf_nan=False, description="a number above 0, or None for no limit"
    )
    limits: Annotated[Limits, BeforeValidator(_limits)]
    approved_plan: Annotated[Any, BeforeValidator(_optional(PlanId.read))]
    on_low_balance: OnLowBalance = Field(description="'send', 'fail' or 'wait'")
    send_window: Any = Field(description="a SendWindow, or None for any hours")
    dry_run: Annotated[bool, BeforeValidator(flag)] = Field(description="true or false")
    report: Annotated[Any, BeforeValidator(_report)]

    @field_validator("send_window")
    @classmethod
    def _check_window(cls, window: Any) -> Any:
        if window is not None and not hasattr(window, "closed_until"):
            raise ValueError
        return window

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if (self.message is None) == (self.content_column is None):
            raise InputError("exactly one of message and content_column is needed")
        columns = (self.destination_column, self.content_column, self.key_columns)
        if LATER not in columns:
            check_columns(*columns)
        if self.limits is not LATER and self.limits.max_invalid is not None and self.on_invalid == "fail":
            raise InputError(
                "limits: max_invalid needs on_invalid='skip': without it one row that cannot be texted is too many"
            )
        if self.approved_plan is not None and self.campaign is None:
            raise InputError("approved_plan needs campaign: the default campaign is that of this task alone")
        return self

    @property
    def plan_binds(self) -> bool:
        """Whether nothing but the messages of the plan may be sent: it was approved, or a limit applies to it."""
        limits = (self.approved_plan, self.limits.max_cost, self.limits.max_repeats, self.limits.max_parts)
        return any(limit is not None for limit in limits)


class GroupOptions(SendingOptions):
    """The checked arguments of a :class:`GroupSmsOperator`, with the same meanings: the one message is one request."""

    kind: ClassVar[str] = "group"
    cost_per_part: ClassVar[float] = 1
    concurrency: ClassVar[int] = 1
    max_requests_per_second: ClassVar[float | None] = None

    message: Annotated[Any, AfterValidator(_group_message), BeforeValidator(_text)]
    groups: Annotated[Any, AfterValidator(read_groups), BeforeValidator(_text)]


_Model = TypeVar("_Model", bound=Arguments)


def check_loaded(task: Any, model: type[Arguments]) -> None:
    """Check the arguments of an operator or a sensor that no template renders."""
    task.given_arguments = frozenset(_given(task))
    # Airflow creates the copies of a mapped task where they run, and would retry an error raised there.
    if not getattr(task, "_BaseOperator__from_mapped", False):
        model(**{name: _loaded(task, name) for name in model.model_fields})


def read_arguments(task: Any, model: type[_Model]) -> _Model:
    """Return the arguments of a task whose templates are rendered.

    An argument that was given but has rendered to None is refused, since None would mean its default: another ledger,
    for example, or a send without a limit or a list of suppressed numbers.
    """
    for name, key in sorted(task.given_arguments):
        value = getattr(task, name)
        if value is None or (key and isinstance(value, Mapping) and value.get(key) is None):
            what = f"{name}: {key}" if key else name
            raise InputError(
                f"{what} is None, once its template is rendered: was there no value to render it from? Nothing was "
                f"sent. If you want the default, leave {key or name} out"
            )
    computed = {"source": LATER} if getattr(task, "computes_source", False) else {}
    return model(**{name: getattr(task, name) for name in model.model_fields if name not in computed}, **computed)


def _loaded(task: Any, name: str) -> Any:
    value = getattr(task, name)
    if name == "source" and getattr(task, "computes_source", False):
        return LATER
    if name in ("source", "suppress"):  # whose forms can be told although Airflow renders the rest
        return value
    if name == "limits" and isinstance(value, Mapping):  # each of them may be a template
        return {key: LATER if is_to_be_rendered(each) else each for key, each in value.items()}
    # A subclass may have added it to template_fields.
    is_rendered_later = name in task.template_fields and (is_to_be_rendered(value) or callable(value))
    return LATER if is_rendered_later else value


def _given(task: Any) -> Iterator[tuple[str, str]]:
    """Yield the templated arguments of a new task that have a value, whether or not their templates are rendered.

    An argument of a mapped task group is left out: it is one value of a list, in which None stands for the default.
    """
    for name in task.template_fields:
        value = getattr(task, name)
        if value is not None and not _is_of_group(value):
            yield name, ""
        if name == "limits" and isinstance(value, Mapping):
            yield from ((name, str(key)) for key, each in value.items() if each is not None and not _is_of_group(each))


def _is_of_group(value: Any) -> bool:
    return type(value).__name__ == "MappedArgument"  # Airflow's own, in a module of another name in each version
