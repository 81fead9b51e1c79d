"""The rules of a task's question to a person: who may decide, who is notified, and how long the question stands.

Airflow refuses the decision of a user who is not assigned to the question. But it keeps the users of a task instance's
first question for ever, lets everybody answer where all users are admins, and knows no four-eyes principle. So each
decision is checked here as well, when the task resumes. DAG files load this module, so it loads nothing of the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import normalize

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.markdown import code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from airflow.providers.common.compat.sdk import Context

SOMEBODY = "somebody in Airflow"
"""A person whom Airflow does not name, as the ledger records them."""
RUN_BY_NOBODY = ("scheduled", "asset_triggered")
"""Types of a DAG run that Airflow starts; a run of any other type has a person, even if Airflow does not name them."""


class Approver(NamedTuple):
    """A user of Airflow who may decide.

    :param id: the id by which Airflow's auth manager knows the user.
    :param name: the name under which Airflow shows the user, and the ledger records who decided.
    """

    id: str
    name: str


@dataclass(frozen=True)
class QuestionOptions:
    """The checked arguments of an operator about its question.

    :param approvers: None means every user whom Airflow lets answer.
    :param four_eyes: whether the person who triggered the run may not decide.
    :param notifiers: Airflow notifiers that tell people that the question is waiting.
    :param timeout: how long the question about a plan stands; None means no limit.
    """

    approvers: tuple[Approver, ...] | None = None
    four_eyes: bool = False
    notifiers: Sequence[Any] = ()
    timeout: timedelta | None = None


@dataclass(frozen=True)
class DecisionRules:
    """The rules of the questions of one DAG run.

    :param triggered_by: the name of the person who may not decide, since they triggered the run; None means that nobody
        is excluded.
    """

    options: QuestionOptions
    triggered_by: str | None = None

    @classmethod
    def of(cls, context: Context, options: QuestionOptions) -> DecisionRules:
        """Return the rules for a task instance.

        :raises InputError: Airflow does not say who triggered the run, or nobody may decide.
        """
        rules = cls(options, _triggered_by(context) if options.four_eyes else None)
        if rules.assigned_users == []:
            raise InputError(
                f"approvers names nobody but {rules.triggered_by}, who triggered this run, and four_eyes=True leaves "
                "them out: nobody could decide. Add an approver, or let somebody else trigger the run"
            )
        return rules

    @property
    def assigned_users(self) -> list[Approver] | None:
        """The users whom Airflow lets answer; None means everybody whom it lets answer any question."""
        if self.options.approvers is None:
            return None
        return [each for each in self.options.approvers if not self._is_excluded(each)]

    def refusal(self, user: Mapping[str, Any]) -> str | None:
        """Return the reason why a person's decision does not count; None where it counts.

        :param user: ``id`` and ``name`` of the person who answered; empty where Airflow does not say who it was.
        """
        given = Approver(str(user.get("id") or ""), str(user.get("name") or SOMEBODY))
        return self._refusal(given, given.id, {each.id for each in self.options.approvers or ()})

    def refusal_of_earlier(self, name: str) -> str | None:
        """Return the reason why an approval on record does not count; None where it counts.

        :param name: the person, as the ledger names them.
        """
        # An id of FAB is a number, which says nothing about the name: another user may have chosen it as a name.
        named = (each for each in self.options.approvers or () if not (each.name == each.id and each.id.isdecimal()))
        return self._refusal(Approver(name, name), name, {each.name for each in named})

    def describe(self) -> list[str]:
        """Return the lines of Markdown that explain these rules to a person."""
        lines = []
        if self.options.approvers is not None:
            lines.append(f"Only these may decide: {', '.join(code(each.name) for each in self.assigned_users or ())}.")
        if self.triggered_by is not None:
            lines.append(f"{code(self.triggered_by)} triggered this run, and may not decide.")
        if self.options.timeout is not None:
            lines.append(
                f"Without a decision within {self.options.timeout} (h:mm:ss), the task fails, and nothing more is sent."
            )
        return ["", *lines] if lines else []

    def _refusal(self, given: Approver, key: str, allowed: set[str]) -> str | None:
        if self.options.approvers is not None and key not in allowed:
            return "is not one of approvers"
        if self.triggered_by is not None and given.name == SOMEBODY:
            return "cannot be distinguished from the person who triggered this run"
        if self._is_excluded(given):
            return "triggered this run, and four_eyes=True asks for another person"
        return None

    def _is_excluded(self, user: Approver) -> bool:
        if self.triggered_by is None:
            return False
        return _folded(self.triggered_by) in (_folded(user.id), _folded(user.name))


def _folded(name: str) -> str:
    """Return a name for comparing: an auth manager may accept it in capital letters, or in another form of Unicode."""
    return normalize("NFKC", normalize("NFKC", name).casefold())


def _triggered_by(context: Context) -> str | None:
    """Return the name of the person who triggered the run; None for a run that Airflow started.

    :raises InputError: Airflow does not say who it was.
    """
    run: Any = context["dag_run"]
    if not hasattr(run, "triggering_user_name"):
        raise InputError(
            "four_eyes=True needs Airflow 3.1.2 or newer, which tells a task who triggered its run. Nothing was sent: "
            "leave it out, or name approvers"
        )
    if run.triggering_user_name:
        return str(run.triggering_user_name)
    kind = str(getattr(run.run_type, "value", run.run_type))
    if kind in RUN_BY_NOBODY:
        return None
    raise InputError(
        f"four_eyes=True: Airflow does not say who triggered this run, which is of the type {kind}. Nothing was sent, "
        "since that person could approve it. Trigger the run in Airflow's pages or by its API, or schedule it"
    )
