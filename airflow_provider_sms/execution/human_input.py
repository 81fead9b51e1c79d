"""A question to a person, in Airflow's required actions, about what became of unknown requests."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.decisions import FAIL, RESEND
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.masking import mask_number

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow.providers.common.compat.sdk import BaseOperator, Context

    from airflow_provider_sms.ledger.requests import RequestRow
    from airflow_provider_sms.planning.plan import Plan


RESUME_METHOD = "execute_complete"
OPTIONS = {"Resend": RESEND, "Treat as sent": ACCEPTED, "Fail": FAIL}
MAX_LISTED = 50


class Answer(NamedTuple):
    """What a person said.

    :param said: ``resend``, ``accepted`` or ``fail``.
    :param by: the person, as Airflow knows them.
    """

    said: str
    by: str


def require_asking(argument: str = "on_unknown='ask'", instead: str = "use 'fail' or 'resend'") -> None:
    """Refuse to ask where Airflow cannot.

    :param argument: what asks.
    :param instead: what to do where nobody can be asked.
    :raises InputError: says from which version on it can.
    """
    try:
        import airflow.sdk.execution_time.hitl  # noqa: F401
    except ImportError as error:
        raise InputError(f"{argument} needs Airflow 3.1 or newer, which can ask a person: {instead}") from error


def wait_for_answer(
    task: BaseOperator, context: Context, campaign: str, unknown: int, asked: Sequence[RequestRow]
) -> NoReturn:
    """Ask, and give up the slot until somebody answers; Airflow goes on with ``execute_complete`` then.

    :param unknown: messages of the task that may have been sent.
    :param asked: the requests that they are in, at least one.
    """
    ask_person(
        task,
        context,
        options=list(OPTIONS),
        subject=_subject(campaign, unknown),
        body=_question_body(campaign, unknown, asked),
    )


def ask_person(
    task: BaseOperator,
    context: Context,
    *,
    options: list[str],
    subject: str,
    body: str,
    field: tuple[str, str, str] | None = None,
) -> NoReturn:
    """Ask in Airflow's required actions, and give up the slot until somebody answers.

    Airflow shows the first question of a task instance for ever, whatever it asks later.

    :param options: one of which is chosen.
    :param body: Markdown.
    :param field: name, text and description of a field to fill in; None: there is none.
    """
    from airflow.sdk.execution_time.hitl import upsert_hitl_detail

    ti_id: Any = context["ti"].id
    params = {} if field is None else _text_field(*field)
    upsert_hitl_detail(ti_id=ti_id, options=options, subject=subject, body=body, params=params)
    try:
        from airflow.sdk.exceptions import TaskAwaitingInput
    except ImportError:  # before 3.3 a trigger has to wait
        from airflow.providers.standard.triggers.hitl import HITLTrigger

        trigger = HITLTrigger(
            ti_id=ti_id, options=options, params=params, defaults=None, multiple=False, timeout_datetime=None
        )
        task.defer(trigger=trigger, method_name=RESUME_METHOD)
    raise TaskAwaitingInput(method_name=RESUME_METHOD)


def _text_field(name: str, value: str, description: str) -> dict[str, Any]:
    from airflow.sdk import Param

    return {name: Param(value, type="string", description=description).serialize()}


def read_answer(event: Mapping[str, Any]) -> Answer:
    """Read what Airflow brings back.

    :raises InputError: it is none of the options.
    """
    return Answer(OPTIONS[chosen_of(event, OPTIONS)], who_answered(event))


def chosen_of(event: Mapping[str, Any], options: Collection[str]) -> str:
    """Give the option that was chosen.

    :raises InputError: it is none of these, or not one.
    """
    chosen = event.get("chosen_options") or []
    if len(chosen) != 1 or chosen[0] not in options:
        raise InputError(f"The answer must be one of {', '.join(options)}")
    return str(chosen[0])


def who_answered(event: Mapping[str, Any]) -> str:
    """Give the person who answered, as Airflow knows them."""
    user = event.get("responded_by_user") or {}
    return str(user.get("name") or user.get("id") or "somebody in Airflow")


def _subject(campaign: str, unknown: int) -> str:
    return f"Campaign {campaign}: {_count(unknown)} may have been sent"


def _count(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages} messages"


def _question_body(campaign: str, unknown: int, asked: Sequence[RequestRow]) -> str:
    lines = [
        f"The service's answer was lost, so {_count(unknown)} of campaign `{campaign}` were texted, or were not.",
        "Everything else is done. The service's own list of what it sent can tell.",
        "",
        "| Request | Messages | Sent at (UTC) | Why it is unknown |",
        "|---|---|---|---|",
    ]
    for question in asked[:MAX_LISTED]:
        when = datetime.fromtimestamp(question.claimed_at, timezone.utc)
        why = (question.reason or "").replace("|", "\\|")
        lines.append(f"| {question.request_id} | {question.messages} | {when:%Y-%m-%d %H:%M:%S} | {why} |")
    if len(asked) > MAX_LISTED:
        lines += ["", f"… and {len(asked) - MAX_LISTED} more requests: see `airflow-sms ledger unknown`."]
    lines += [
        "",
        "- **Resend**: they are texted again. Whoever got the first text gets a second one.",
        "- **Treat as sent**: they are not texted again. Whoever did not get the text goes without it.",
        "- **Fail**: the task fails, and they stay unknown.",
    ]
    return "\n".join(lines)


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
        body=_approval_body(plan, samples),
        field=(FIELD, plan.id, "The plan that you decide about. Change it only where the log asks for another plan"),
    )


def _approval_body(plan: Plan, samples: Sequence[tuple[str, str]]) -> str:
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
