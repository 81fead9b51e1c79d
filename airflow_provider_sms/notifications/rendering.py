"""The templates of a notifier → their values, with nothing of them in a log."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import Variable

from airflow_provider_sms.exceptions import TemplateError
from airflow_provider_sms.masking import mask_numbers_in

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import BaseNotifier, Context


class _Variables:
    """Airflow's variables, as ``var.value`` in a template has them."""

    def __getattr__(self, key: str) -> Any:
        return Variable.get(key)

    def get(self, key: str, default: Any = None) -> Any:
        return Variable.get(key, default)


def rendered(notifier: BaseNotifier, context: Context) -> dict[str, Any]:
    """Render each template field, and leave the notifier as it is.

    The base would put the values of the first call in place of the templates, for all calls that come after it in the
    same process. And it would log a list of numbers of which one cannot be rendered.

    ``var.value`` is there for every callback, so that numbers need not stand in the code: Airflow leaves it out for
    deadlines, whose arguments it stores, and for some of a DAG's callbacks. ``exception`` is there as well, though only
    a task's callbacks are given one: an alert is worth more than its reason.

    :param context: as Airflow hands it to a callback.
    :raises TemplateError: names the field and the reason, not the template.
    """
    values: Any = context if "var" in context else {**context, "var": {"value": _Variables()}}
    # The DAG of a DAG's callback within ``dag.test()`` is a copy that has no environment.
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
    """Name an error, and say what is wrong where its words are known to quote no value."""
    from jinja2 import TemplateError as JinjaError

    kind = type(error).__name__
    if isinstance(error, JinjaError) and error.message:
        return f"{kind}: {mask_numbers_in(error.message)}"
    # Airflow's own hold one of a list, such as VARIABLE_NOT_FOUND.
    code = getattr(getattr(error, "error", None), "error", None)
    return f"{kind}: {code.value}" if isinstance(code, Enum) else kind
