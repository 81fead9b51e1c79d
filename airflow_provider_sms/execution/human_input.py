"""Questions to a person in Airflow's required actions, and the decisions that come back.

One kind of question is about unknown requests, the other about a plan. Airflow shows the first question of a task
instance for ever, whatever the task asks later: so one task asks one kind, and the form about a plan names that plan.
"""

from __future__ import annotations

import logging
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.deferral import RESUME_METHOD
from airflow_provider_sms.execution.xcom import PLAN
from airflow_provider_sms.ledger.decisions import FAIL, RESEND, answer
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.masking import mask_number

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.ledger.request_queries import RequestRow
    from airflow_provider_sms.planning.plan import Plan

log = logging.getLogger(__name__)

OPTIONS = {"Resend": RESEND, "Treat as sent": ACCEPTED, "Fail": FAIL}
"""The buttons of a question about unknown requests, and the decisions as the ledger stores them."""
MAX_LISTED = 50
"""Requests that such a question lists: a person reads no more, and Airflow stores the question."""
SEND, STOP = "Send", "Stop"
"""The buttons of a question about a plan."""
FIELD = "plan"
"""The field of the form with the id of the plan that the decision is about."""


class PlanDecision(NamedTuple):
    """A person's decision about a plan.

    :param send: whether the plan may be sent.
    :param by: the person, as Airflow knows them.
    :param plan_id: the plan that the form named; None where the decision came without the form's field.
    """

    send: bool
    by: str
    plan_id: str | None


def require_asking(argument: str = "on_unknown='ask'", instead: str = "use 'fail' or 'resend'") -> None:
    """Refuse to ask where Airflow cannot.

    :param argument: the operator's argument that asks.
    :param instead: the alternative, for the error.
    :raises InputError: names the version of Airflow from which on it can.
    """
    try:
        import airflow.sdk.execution_time.hitl  # noqa: F401
    except ImportError as error:
        raise InputError(f"{argument} needs Airflow 3.1 or newer, which can ask a person: {instead}") from error


def ask_about_requests(context: Context, campaign: str, unknown: int, asked: Sequence[RequestRow]) -> NoReturn:
    """Ask about unknown requests, and give up the slot until a person decides.

    :param unknown: messages of the task that may have been sent.
    :param asked: the requests that hold these messages, at least one.
    """
    _ask(
        context,
        options=list(OPTIONS),
        subject=f"Campaign {campaign}: {_count(unknown)} may have been sent",
        body=_requests_body(campaign, unknown, asked),
    )


def ask_about_plan(context: Context, plan: Plan, samples: Sequence[tuple[str, str]]) -> NoReturn:
    """Ask whether to send a plan, and give up the slot until a person decides.

    The form has a field with the plan's id: a decision about a later plan has to name that one, which only a person
    who has looked at it knows.

    :param samples: destinations and texts of some messages; the numbers are masked here.
    """
    _ask(
        context,
        options=[SEND, STOP],
        subject=f"Campaign {plan.campaign}: send {plan.to_send} messages for about {plan.cost:f} credits?",
        body=_plan_body(plan, samples),
        field=(FIELD, plan.id, "The plan that you decide about. Change it only where the log asks for another plan"),
    )


def record_request_decision(session: LedgerSession, event: Mapping[str, Any]) -> None:
    """Carry out a person's decision about the requests that the task asked about, and record who it was.

    :raises AirflowFailException: the decision is that the task fails.
    :raises InputError: the decision is none of the options.
    """
    decision, by = read_request_decision(event)
    count = answer(session.store, session.who, decision, by)
    log.info("%s decided about %d unknown requests: %s", by, count, decision)
    if decision == FAIL:
        raise AirflowFailException(f"{by} decided that the task fails; {count} requests stay unknown")


def read_request_decision(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return the decision about unknown requests that Airflow brings back, as the ledger stores it, and the person.

    :raises InputError: it is none of the options.
    """
    return OPTIONS[_chosen(event, OPTIONS)], _person(event)


def is_plan_decision(event: Mapping[str, Any]) -> bool:
    """Return whether Airflow brings back a decision about a plan."""
    return set(event.get("chosen_options") or ()) <= {SEND, STOP} and "chosen_options" in event


def read_plan_decision(event: Mapping[str, Any]) -> PlanDecision:
    """Return the decision about a plan that Airflow brings back.

    :raises InputError: it is none of the options.
    """
    named = (event.get("params_input") or {}).get(FIELD)
    plan_id = None if named is None else str(named).strip()
    return PlanDecision(_chosen(event, (SEND, STOP)) == SEND, _person(event), plan_id)


def _ask(
    context: Context, *, options: list[str], subject: str, body: str, field: tuple[str, str, str] | None = None
) -> NoReturn:
    """Ask in Airflow's required actions, and give up the slot until a person decides.

    :param options: one of which is chosen.
    :param body: Markdown.
    :param field: name, text and description of a field to fill in; None means no field.
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
        raise TaskDeferred(trigger=trigger, method_name=RESUME_METHOD) from None
    raise TaskAwaitingInput(method_name=RESUME_METHOD)


def _text_field(name: str, value: str, description: str) -> dict[str, Any]:
    from airflow.sdk import Param

    return {name: Param(value, type="string", description=description).serialize()}


def _chosen(event: Mapping[str, Any], options: Collection[str]) -> str:
    """Return the option that was chosen.

    :raises InputError: it is none of these, or not one.
    """
    chosen = event.get("chosen_options") or []
    if len(chosen) != 1 or chosen[0] not in options:
        raise InputError(f"The answer must be one of {', '.join(options)}")
    return str(chosen[0])


def _person(event: Mapping[str, Any]) -> str:
    """Return the person who decided, as Airflow knows them."""
    user = event.get("responded_by_user") or {}
    return str(user.get("name") or user.get("id") or "somebody in Airflow")


def _count(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages} messages"


def _requests_body(campaign: str, unknown: int, asked: Sequence[RequestRow]) -> str:
    lines = [
        f"The service's response was lost, so {_count(unknown)} of campaign `{campaign}` were texted, or were not.",
        "Everything else is done. The service's own list of sent messages tells which.",
        "",
        "| Request | Messages | Sent at (UTC) | Why it is unknown |",
        "|---|---|---|---|",
    ]
    for question in asked[:MAX_LISTED]:
        when = datetime.fromtimestamp(question.claimed_at, timezone.utc)
        why = _cell(question.reason or "")
        lines.append(f"| {question.request_id} | {question.messages} | {when:%Y-%m-%d %H:%M:%S} | {why} |")
    if len(asked) > MAX_LISTED:
        lines += ["", f"… and {len(asked) - MAX_LISTED} more requests: see `airflow-sms ledger unknown`."]
    lines += [
        "",
        "- **Resend**: they are texted again. People who got the first text get a second one.",
        "- **Treat as sent**: they are not texted again. People who did not get the text go without it.",
        "- **Fail**: the task fails, and the requests stay unknown.",
    ]
    return "\n".join(lines)


def _plan_body(plan: Plan, samples: Sequence[tuple[str, str]]) -> str:
    lines = [f"Nothing has been sent yet. Plan `{plan.id}`:", "", "| | |", "|---|---|"]
    lines += [f"| {_cell(name)} | {_cell(value)} |" for name, value in plan.lines()]
    lines += ["", "Some of the messages:", ""]
    for destination, content in samples:
        # A text as a block of code is shown as it is, and never as Markdown.
        lines += [f"`{mask_number(destination)}`", "", *(f"    {line}" for line in content.splitlines()), ""]
    lines += [
        "- **Send**: the messages go out; nothing sent can be called back.",
        "- **Stop**: the task fails, and nobody is texted.",
        "",
        (
            "If the recipients change before they are texted, this question comes back. Airflow shows it as it stands "
            f"here; the plan that is meant is then in the XCom `{PLAN}` and in the task's log, and its id belongs in "
            "the field."
        ),
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
