"""What the operators that send share with the sensor: the hook, errors of templates, and mapping."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator

from airflow_provider_sms.execution.hidden import KeepsTexts, without_shown_rows
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.planning.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jinja2
    from airflow.providers.common.compat.sdk import Context
    from airflow.sdk.definitions.mappedoperator import OperatorPartial

    _Base = BaseOperator
else:
    _Base = object


class SmsTask(KeepsTexts, _Base):
    """A task with a connection of type ``sms``; a base beside Airflow's ``BaseOperator``."""

    sms_conn_id: str
    _hook: SmsHook | None = None

    @property
    def hook(self) -> SmsHook:
        """The hook of the task's connection, created on first use. Before ``execute``, its id may be a template."""
        # Not a cached_property, which would keep a hook from before sms_conn_id was rendered, of another account.
        if self._hook is None or self._hook.sms_conn_id != self.sms_conn_id:
            self._hook = SmsHook(self.sms_conn_id)
        return self._hook

    def render_template(
        self,
        content: Any,
        context: Context,
        jinja_env: jinja2.Environment | None = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """Render a value as :class:`KeepsTexts` does.

        :raises AirflowFailException: a template is wrong, or names what is not there; a retry would fail as well.
        """
        from jinja2 import TemplateError

        try:
            return super().render_template(content, context, jinja_env, seen_oids)
        except TemplateError as error:
            raise AirflowFailException(
                f"A template cannot be rendered: {type(error).__name__}: {mask_numbers_in(str(error.message))}. Double "
                "braces hold a value of Airflow's, such as {{ ds }}; single braces name a column of the table, such as "
                "{first_name}"
            ) from None

    @classmethod
    def partial(cls, **kwargs: Any) -> OperatorPartial:
        """Return the operator to map, as Airflow does, with the arguments of :func:`arguments_to_map`."""
        made: OperatorPartial = super().partial(**arguments_to_map(cls, kwargs))
        return made


def arguments_to_map(operator_class: type[BaseOperator], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a task that may be mapped, as Airflow has to get them.

    Of the task's own ``default_args``, Airflow gives mapped tasks those that every task has, and drops the others, such
    as ``suppress`` and ``dry_run``: here they become arguments. Rows in memory are wrapped, since Airflow stores the
    arguments as they are.
    """
    defaults = arguments.get("default_args") or {}
    classes = (each for each in operator_class.__mro__ if issubclass(each, BaseOperator) and each is not BaseOperator)
    names = {name for each in classes for name in signature(each.__init__).parameters}
    given = {**{name: defaults[name] for name in names & defaults.keys()}, **arguments}
    return without_shown_rows({n: value.given if isinstance(value, Limits) else value for n, value in given.items()})
