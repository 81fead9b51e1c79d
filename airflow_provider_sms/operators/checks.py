"""The check of a task's arguments: when Airflow loads the DAG, and again once the task's templates are rendered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_sms.arguments import LATER, Arguments
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.hidden import is_to_be_rendered

if TYPE_CHECKING:
    from collections.abc import Iterator

_Model = TypeVar("_Model", bound=Arguments)


def check_loaded(task: Any, *models: type[Arguments]) -> None:
    """Check the arguments of an operator or a sensor that no template renders."""
    task.given_arguments = frozenset(_given(task))
    # Airflow creates the copies of a mapped task where they run, and would retry an error raised there.
    if not getattr(task, "_BaseOperator__from_mapped", False):
        for model in models:
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
