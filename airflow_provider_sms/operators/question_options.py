"""The checks of the arguments about an operator's question to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.common.compat.sdk import BaseNotifier

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.decision_rules import Approver, QuestionOptions
from airflow_provider_sms.operators.checks import Check
from airflow_provider_sms.operators.durations import read_duration
from airflow_provider_sms.operators.templated_values import read_value


def read_question_options(task: Any) -> QuestionOptions:
    """Return ``approvers``, ``four_eyes``, ``approval_notifiers`` and ``approval_timeout`` of an operator.

    :raises InputError: names the argument.
    """
    timeout = getattr(task, "approval_timeout", None)
    return QuestionOptions(
        _approvers(task.approvers), _is_on(task.four_eyes), _notifiers(task.approval_notifiers), _timeout(timeout)
    )


def _check_values(task: Any) -> None:
    read_question_options(task)


def _check_is_asked(task: Any) -> None:
    """Refuse an argument about a question that is never asked: it would protect nothing."""
    makes_plan = hasattr(task, "approve")
    approves = makes_plan and (read_value(task, "approve") or task.approve_above is not None)
    if not (approves or task.on_unknown == "ask"):
        for name in ("approvers", "four_eyes", "approval_notifiers"):
            if getattr(task, name):
                asking = "approve=True, approve_above or on_unknown='ask'" if makes_plan else "on_unknown='ask'"
                raise InputError(f"{name} needs a question: set {asking}")
    if getattr(task, "approval_timeout", None) is not None and not approves:
        raise InputError("approval_timeout needs approve=True or approve_above: no other question has a time limit")


def _approvers(given: Any) -> tuple[Approver, ...] | None:
    if given is None:
        return None
    if isinstance(given, Sequence) and not isinstance(given, str) and given:
        approvers = [_approver(each) for each in given]
        if all(approvers):
            return tuple(filter(None, approvers))
    raise InputError(
        "approvers must be a list with the id of at least one user of Airflow, as 'ann' or as {'id': '3', 'name': "
        "'ann'}, or None for everybody whom Airflow lets answer"
    )


def _approver(given: Any) -> Approver | None:
    """Return a user; None where the value cannot be one."""
    user = given if isinstance(given, Mapping) else {"id": given, "name": given}
    if set(user) != {"id", "name"} or not all(isinstance(each, str) and each.strip() for each in user.values()):
        return None
    return Approver(user["id"], user["name"])


def _is_on(four_eyes: Any) -> bool:
    if not isinstance(four_eyes, bool):
        raise InputError("four_eyes must be True or False")
    return four_eyes


def _notifiers(given: Any) -> Sequence[BaseNotifier]:
    if given is None:
        return ()
    notifiers = given if isinstance(given, (list, tuple)) else [given]
    if not all(isinstance(each, BaseNotifier) for each in notifiers):
        raise InputError("approval_notifiers must be one of Airflow's notifiers, a list of them, or None for nobody")
    return tuple(notifiers)


def _timeout(given: Any) -> timedelta | None:
    if given is None:
        return None
    return timedelta(seconds=read_duration("approval_timeout", given, "or None for no limit"))


QUESTION_CHECKS = (
    Check(_check_values, ("approvers", "four_eyes", "approval_notifiers", "approval_timeout")),
    Check(_check_is_asked, ("approve", "on_unknown")),
)
"""The checks of the arguments about a question. Only operators that make a plan have ``approve``."""
