"""The bases of the tasks: what the sensor shares with the operators that send, and what these share alone."""

from __future__ import annotations

from abc import abstractmethod
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator

from airflow_provider_sms.execution.hidden import KeepsTexts, without_shown_rows
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.operators.options import read_arguments
from airflow_provider_sms.planning.limits import Limits
from airflow_provider_sms.stop_flag import StopFlag

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jinja2
    from airflow.providers.common.compat.sdk import Context
    from airflow.sdk.definitions.mappedoperator import OperatorPartial

    from airflow_provider_sms.operators.options import OnUnknown, SendingOptions

    _Base = BaseOperator
else:
    _Base = object


class SmsTask(KeepsTexts, _Base):
    """A task with a connection of type ``sms``; a base beside Airflow's ``BaseOperator``."""

    sms_conn_id: str

    @property
    def hook(self) -> SmsHook:
        """A hook of the task's connection. Before ``execute``, its id may be a template."""
        return SmsHook(self.sms_conn_id)

    def render_template(
        self,
        content: Any,
        context: Context,
        jinja_env: jinja2.Environment | None = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """Render a value; a template that is wrong, or names what is not there, is an error that no retry helps."""
        from jinja2 import TemplateError

        try:
            return super().render_template(content, context, jinja_env, seen_oids)
        except TemplateError as error:
            raise AirflowFailException(
                f"A template cannot be rendered: {type(error).__name__}: {mask_numbers_in(str(error.message))}. Double "
                "braces hold a value of Airflow's, such as {{ run_id }}; {{ ds }} is in no run without a logical date, "
                "such as one that is triggered by hand. Single braces name a column of the table, such as {first_name}"
            ) from None

    @classmethod
    def partial(cls, **kwargs: Any) -> OperatorPartial:
        """Return the operator to map, as Airflow does, with the arguments of :func:`arguments_to_map`."""
        made: OperatorPartial = super().partial(**arguments_to_map(cls, kwargs))
        return made


class SmsOperatorBase(SmsTask, BaseOperator):
    """The base of the operators that send: a subclass ends its ``__init__`` with a check of its arguments."""

    options_model: ClassVar[type[SendingOptions]]
    """What checks the arguments."""

    def __init__(
        self,
        *,
        send_options: dict[str, Any] | None = None,
        campaign: str | None = None,
        on_unknown: OnUnknown = "fail",
        sms_conn_id: str = SmsHook.default_conn_name,
        ledger_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.send_options = send_options
        self.campaign = campaign
        self.on_unknown = on_unknown
        self.sms_conn_id = sms_conn_id
        self.ledger_conn_id = ledger_conn_id
        self.stop_signal = StopFlag()

    def execute(self, context: Context) -> Any:
        """Send; an ``AirflowFailException`` says that a retry could not help."""
        return self.execute_complete(context)

    def execute_complete(self, context: Context, event: Any = None) -> Any:
        """Begin again from the top after a deferral, which a moment or a balance ended."""
        self.stop_signal = StopFlag()
        return self.send(context, event)

    def read_options(self) -> Any:
        """Check the rendered arguments, and return them.

        :raises InputError: names the argument.
        """
        return read_arguments(self, self.options_model)

    @abstractmethod
    def send(self, context: Context, event: Any) -> Any:
        """Make one attempt, and return the task's result; None is the event before any deferral."""

    def on_kill(self) -> None:
        """Claim nothing more; ``execute`` ends once the requests in flight are recorded."""
        self.stop_signal.set()


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
