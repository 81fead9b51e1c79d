"""``@task.bulk_sms``: a function returns the recipients, and a task texts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import Asset, DecoratedOperator, determine_kwargs, task_decorator_factory

from airflow_provider_sms.execution.hidden import Rows, is_to_be_rendered
from airflow_provider_sms.operators.base import arguments_to_map
from airflow_provider_sms.operators.bulk import BulkSmsOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context


class BulkSmsDecoratedOperator(DecoratedOperator, BulkSmsOperator):
    """Call a function and text the people that it returns.

    The function is called once in each attempt, as soon as the attempt is in its ledger, and again after each deferral.

    :param python_callable: the function.
    :param op_args: its positional arguments. (templated)
    :param op_kwargs: its keyword arguments. (templated)
    :param kwargs: the arguments of :class:`BulkSmsOperator` except ``source``.
    """

    custom_operator_name = "@task.bulk_sms"
    template_fields: Sequence[str] = (
        *DecoratedOperator.template_fields,
        *(field for field in BulkSmsOperator.template_fields if field != "source"),
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DecoratedOperator.template_fields_renderers,
        **BulkSmsOperator.template_fields_renderers,
    }
    computes_source = True
    _is_made = False

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, source=None, **kwargs)
        # From here on only Airflow assigns the arguments, once they are rendered.
        self._is_made = True

    def _hidden(self, value: Any) -> Any:
        """Return an argument as a template field may hold it; assets stay, since Airflow looks for them."""
        stays = isinstance(value, (Rows, Asset)) or (not self._is_made and is_to_be_rendered(value))
        return value if stays else Rows(value)

    @property
    def op_args(self) -> Any:
        """The positional arguments; wrapped, so that Airflow cannot show them."""
        return self._op_args

    @op_args.setter
    def op_args(self, values: Collection[Any]) -> None:
        self._op_args = [self._hidden(value) for value in values]

    @property
    def op_kwargs(self) -> Any:
        """The keyword arguments; wrapped, so that Airflow cannot show them."""
        return self._op_kwargs

    @op_kwargs.setter
    def op_kwargs(self, values: Mapping[str, Any]) -> None:
        self._op_kwargs = {name: self._hidden(value) for name, value in values.items()}

    def get_source(self, context: Context) -> Any:
        """Call the function, and return its recipients."""
        arguments = [_given(value) for value in self.op_args]
        named = {name: _given(value) for name, value in self.op_kwargs.items()}
        # Not merged into the context, which callbacks get, too.
        wanted = determine_kwargs(self.python_callable, arguments, context)
        self.source = self.python_callable(*arguments, **{**wanted, **named})
        return self.source


def _given(value: Any) -> Any:
    """Return an argument as the function gets it."""
    return value.data if isinstance(value, Rows) else value


def bulk_sms_task(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """Return a task made from a function that returns recipients: the task texts them, and returns the summary.

    Airflow calls it as ``@task.bulk_sms``.

    :param python_callable: the function, where the decorator is used without arguments. It returns recipients in any
        form that :class:`BulkSmsOperator` takes as ``source``.
    :param kwargs: the arguments of :class:`BulkSmsOperator` except ``source``, and those of every Airflow task.
    :raises TypeError: ``source`` or ``multiple_outputs`` is given.
    """
    if "source" in kwargs:
        raise TypeError("@task.bulk_sms takes no source: the function returns it")
    if "multiple_outputs" in kwargs:
        raise TypeError("@task.bulk_sms takes no multiple_outputs: the task returns one summary")
    arguments = arguments_to_map(BulkSmsOperator, kwargs)
    arguments.pop("source", None)  # of default_args, which may be for other tasks, too
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=False,  # else Airflow infers it from what the function returns
        decorated_operator_class=BulkSmsDecoratedOperator,
        **arguments,
    )
