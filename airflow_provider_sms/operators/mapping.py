"""Mapped tasks: the arguments of ``partial(…)``, of which Airflow would store rows, and drop a part.

Apart from the base of the operators that send, because the sensor and the decorator share it.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_provider_sms.execution.redaction import without_shown_rows
from airflow_provider_sms.planning.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk.definitions.mappedoperator import OperatorPartial

    _Base = BaseOperator
else:
    _Base = object


class CanBeMapped(_Base):
    """Maps a task with all of its arguments; a base beside Airflow's ``BaseOperator``."""

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
