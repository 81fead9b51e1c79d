"""The checks of an operator's arguments: when Airflow loads the DAG, and again once the task's templates are rendered.

Arguments that no template renders are checked when the DAG is loaded. A check that reads a templated argument waits
for the task. Checks need no slow import, no connection, and nothing of the machine on which the task will run.
"""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.redaction import is_to_be_rendered
from airflow_provider_sms.masking import mask_numbers_in, quoted
from airflow_provider_sms.operators.rendering import is_text_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_TEXTS = ("message", "campaign", "groups")
"""Arguments that are texts or names, or lists of them."""


class Check(NamedTuple):
    """A check of some arguments.

    :param refuse: takes the task, and raises an ``InputError`` if its arguments cannot be used.
    :param reads: the arguments whose values the check reads. An argument that it only tests for presence is not listed.
    """

    refuse: Callable[[Any], object]
    reads: tuple[str, ...] = ()


def check_loaded(task: Any, checks: Iterable[Check]) -> None:
    """Check the arguments that no template renders.

    :param task: the operator or sensor, with all of its arguments.
    :raises InputError: names the argument.
    """
    task.given_arguments = _given_arguments(task)
    # Airflow creates the copies of a mapped task where they run, and would retry an error raised there.
    if getattr(task, "_BaseOperator__from_mapped", False):
        return
    for check in checks:
        if not any(is_rendered_later(task, name) for name in check.reads):
            check.refuse(task)


def check_rendered(task: Any, checks: Iterable[Check]) -> None:
    """Check all arguments of a task whose templates are rendered.

    :raises InputError: names the argument. An argument that was given but has rendered to None is refused, since None
        would mean its default: another ledger, for example, or a send without a limit or a list of suppressed numbers.
    """
    for name in sorted(task.given_arguments):
        if getattr(task, name) is None:
            raise InputError(
                f"{name} is None, once its template is rendered: was there no value to render it from? Nothing was "
                f"sent. If you want the default, leave {name} out"
            )
    for check in checks:
        check.refuse(task)


def require_texts(task: Any) -> None:
    """Refuse a rendered text or name that is of another type: ``1e5`` may have become 100000.0 before it came here.

    :raises InputError: names the argument.
    """
    for name in _TEXTS:
        value = getattr(task, name, None)
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is not None and not isinstance(each, str):
                raise InputError(
                    f"{name} must be text, not {type(each).__name__}. A value from another task, or from a template "
                    "with render_template_as_native_obj, keeps its type, and does not tell how it was written: pass it "
                    "as text"
                )


def _given_arguments(task: Any) -> frozenset[str]:
    """Return the templated arguments of a new task that have a value, whether or not their templates are rendered.

    An argument of a mapped task group is left out: it is one value of a list, in which None stands for the default.
    """
    values = {name: getattr(task, name) for name in task.template_fields}
    return frozenset(name for name, value in values.items() if value is not None and not _is_of_group(value))


def _is_of_group(value: Any) -> bool:
    return type(value).__name__ == "MappedArgument"  # Airflow's own, in a module of another name in each version


def is_rendered_later(task: Any, name: str) -> bool:
    """Return whether Airflow replaces an argument's value before the task runs.

    :param name: the argument's name. A subclass may have added it to ``template_fields``.
    """
    if name not in task.template_fields:
        return False
    value = getattr(task, name)
    return is_to_be_rendered(value) or callable(value) or (name == "message" and is_text_file(value))


def require_flag(task: Any, name: str) -> None:
    """Refuse an argument that is not a bool.

    :raises InputError: names the argument.
    """
    if not isinstance(getattr(task, name), bool):
        raise InputError(f"{name} must be True or False")


def require_whole(task: Any, name: str, least: int, most: int | None = None) -> None:
    """Refuse an argument that is not a whole number within limits.

    :param most: None means no limit.
    :raises InputError: names the argument and the limits.
    """
    value = getattr(task, name)
    if type(value) is not int or value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"{least} to {most}"
        raise InputError(f"{name} must be a whole number, {limits}, not {value!r}")


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number, and not a bool."""
    return type(value) is int or (type(value) is float and isfinite(value))


def form_of(value: Any) -> str:
    """Return a value as an error may show it: a text is cut and masked, since it may be anything."""
    if value is None or isinstance(value, (bool, int, float, Decimal)):
        return mask_numbers_in(str(value))
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    return f"a value of type {type(value).__name__}"


def _require_conn_id(task: Any, name: str, words: str) -> None:
    """Refuse an argument that cannot be the id of an Airflow connection.

    :param words: the type of connection that is needed, for the error.
    :raises InputError: names the argument.
    """
    value = getattr(task, name)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{name} must be the id of a connection of type {words}, not {form_of(value)}")


def _check_sms_conn_id(task: Any) -> None:
    _require_conn_id(task, "sms_conn_id", "sms, such as 'sms_default'")


def _check_ledger_conn_id(task: Any) -> None:
    if task.ledger_conn_id is not None:
        _require_conn_id(task, "ledger_conn_id", "postgres, or None for the configured ledger")


SMS_CONNECTION = Check(_check_sms_conn_id, ("sms_conn_id",))
"""The check of the connection to send with; only the task finds out whether that connection exists."""
LEDGER_CONNECTION = Check(_check_ledger_conn_id, ("ledger_conn_id",))
"""The same check for the connection to the ledger."""
