"""Rendering the template fields of a notifier, without any of their values in a log."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import Variable

from airflow_provider_sms.exceptions import TemplateError
from airflow_provider_sms.masking import mask_numbers_in

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import BaseNotifier, Context


class _Variables:
    """Airflow's variables, as ``var.value`` in a template."""

    def __getattr__(self, key: str) -> Any:
        return Variable.get(key)

    def get(self, key: str, default: Any = None) -> Any:
        return Variable.get(key, default)


def render_fields(notifier: BaseNotifier, context: Context) -> dict[str, Any]:
    """Return the value of each template field, and leave the notifier unchanged.

    The base class would replace the templates by the values of the first call, for all later calls in the same
    process. It would also log a list of numbers in which one cannot be rendered.

    ``var.value`` is available in every callback, so that numbers need not be in the code: Airflow leaves it out for
    deadlines, whose arguments it stores, and for some callbacks of DAGs. ``exception`` is always defined as well,
    although only callbacks of tasks have one: an alert without its reason is better than none.

    :param context: as Airflow passes it to a callback.
    :raises TemplateError: a field cannot be rendered; the error names it and the reason, not the template.
    """
    values: Any = context if "var" in context else {**context, "var": {"value": _Variables()}}
    # In ``dag.test()`` the DAG of a DAG's callback is a copy without an environment.
    dag = context.get("dag")
    environment = notifier.get_template_env(dag=dag if hasattr(dag, "get_template_env") else None)
    environment.globals.setdefault("exception", None)
    fields = {}
    for field in notifier.template_fields:
        try:
            fields[field] = notifier.render_template(getattr(notifier, field), values, environment)
        except Exception as error:  # noqa: BLE001 - a template may call anything
            raise TemplateError(f"the template of {field} cannot be rendered: {_reason(error)}") from None
    return fields


def _reason(error: Exception) -> str:
    """Return the type of an error, with its message if that is known to quote no value."""
    from jinja2 import TemplateError as JinjaError

    kind = type(error).__name__
    if isinstance(error, JinjaError) and error.message:
        return f"{kind}: {mask_numbers_in(error.message)}"
    # Errors of Airflow hold a code from a fixed list, such as VARIABLE_NOT_FOUND.
    code = getattr(getattr(error, "error", None), "error", None)
    return f"{kind}: {code.value}" if isinstance(code, Enum) else kind
