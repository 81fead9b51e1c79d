"""The question to a person, in Airflow's required actions, whether a plan is to be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from airflow_provider_sms.messages.masking import mask_number
from airflow_provider_sms.operators.question import ask_person, chosen_of, who_answered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.providers.common.compat.sdk import BaseOperator, Context

    from airflow_provider_sms.sending.plan import Plan

SEND, STOP = "Send", "Stop"
FIELD = "plan"
"""The field of the form with the id of the plan that the answer is about."""


class Verdict(NamedTuple):
    """What a person said of a plan.

    :param send: whether it is to be sent.
    :param by: the person, as Airflow knows them.
    :param plan_id: the plan that the form named; None where the answer came without the form's field.
    """

    send: bool
    by: str
    plan_id: str | None


def is_verdict(event: Mapping[str, Any]) -> bool:
    """Whether what Airflow brings back answers this question."""
    return set(event.get("chosen_options") or ()) <= {SEND, STOP} and "chosen_options" in event


def read_verdict(event: Mapping[str, Any]) -> Verdict:
    """Read what Airflow brings back.

    :raises InputError: it is none of the options.
    """
    named = (event.get("params_input") or {}).get(FIELD)
    plan_id = None if named is None else str(named).strip()
    return Verdict(chosen_of(event, (SEND, STOP)) == SEND, who_answered(event), plan_id)


def wait_for_verdict(task: BaseOperator, context: Context, plan: Plan, samples: Sequence[tuple[str, str]]) -> NoReturn:
    """Ask whether to send, and give up the slot until somebody answers.

    Airflow shows the first question of a task instance again, whatever is asked later. So the form has a field with the
    plan's id: an answer to a later plan has to name that one, which only whoever has looked at it knows.

    :param samples: some destinations and texts; the numbers are masked here.
    """
    ask_person(
        task,
        context,
        options=[SEND, STOP],
        subject=f"Campaign {plan.campaign}: send {plan.to_send} messages for about {plan.cost:f} credits?",
        body=_body(plan, samples),
        field=(FIELD, plan.id, "The plan that you decide about. Change it only where the log asks for another plan"),
    )


def _body(plan: Plan, samples: Sequence[tuple[str, str]]) -> str:
    lines = [f"Nothing has been sent yet. Plan `{plan.id}`:", "", "| | |", "|---|---|"]
    lines += [f"| {_cell(name)} | {_cell(value)} |" for name, value in plan.lines()]
    lines += ["", "Some of the messages:", ""]
    for destination, content in samples:
        lines += [f"`{mask_number(destination)}`", "", *_quoted(content), ""]
    lines += [
        "- **Send**: the messages go out; nothing sent can be called back.",
        "- **Stop**: the task fails, and nobody is texted.",
        "",
        (
            "If the recipients change before they are texted, this question comes back. Airflow shows it as it stands "
            f"here; the plan that is meant is then in the XCom `{FIELD}` and in the task's log, and its id belongs in "
            "the field."
        ),
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _quoted(content: str) -> list[str]:
    """Give a text as a block of code: it is shown as it is, and never as Markdown."""
    return [f"    {line}" for line in content.splitlines()]
