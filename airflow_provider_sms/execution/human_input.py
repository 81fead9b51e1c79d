"""Questions to a person in Airflow's required actions, and the decisions that come back.

One kind of question is about unknown requests, the other about a plan. Airflow shows the first question of a task
instance for ever, whatever the task asks later: so one task asks one kind, and the form about a plan names that plan.
Airflow shows the subject as plain text, but it may be passed on as Markdown: other people's texts are code in it, too.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.decision_rules import SOMEBODY
from airflow_provider_sms.execution.deferral import RESUME_METHOD
from airflow_provider_sms.execution.failures import lost_words
from airflow_provider_sms.execution.markdown import block, cell, code
from airflow_provider_sms.execution.xcom import PLAN
from airflow_provider_sms.formatting import by_count, task_words
from airflow_provider_sms.ledger.account import UNDECIDED
from airflow_provider_sms.ledger.decisions import FAIL, RESEND, answer, questions
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.ledger.progress import failed_on_unknown
from airflow_provider_sms.masking import mask_number
from airflow_provider_sms.planning.limits import REPEATS_ADVICE, repeats_in_words
from airflow_provider_sms.reporting.balance_words import sentences, verdict_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.decision_rules import DecisionRules
    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.ledger.approvals import PlanExtent
    from airflow_provider_sms.ledger.request_queries import RequestRow
    from airflow_provider_sms.planning.plan import Plan

log = logging.getLogger(__name__)

OPTIONS = {"Resend": RESEND, "Treat as sent": ACCEPTED, "Fail": FAIL}
"""The buttons of a question about unknown requests, and the decisions as the ledger stores them."""
MAX_LISTED = 50
"""Requests that such a question lists: a person reads no more, and Airflow stores the question."""
SEND, STOP = "Send", "Stop"
"""The buttons of a question about a plan."""
_ASK_THE_SERVICE = "The service's own list of sent messages tells which."
_LATER_THE_BALANCE = (
    "Where the words below say until when a request may be charged for, `airflow-sms ledger unknown --read-balance` "
    "may tell after that time."
)
_FIRST_THE_BALANCE = (
    "First look at what the account's balance says, below, which holds if nobody else spent from the account "
    "meanwhile. If that does not settle it, check the service's own list of sent messages."
)
_ONE_ANSWER = (
    "Your answer applies to all of these requests that are still unknown when it is recorded. If they need different "
    "answers, close some of them first, on the campaign's page or with `airflow-sms ledger resolve`."
)
_SHORTEST_TIMEOUT = timedelta(seconds=1)
"""Airflow takes no negative time limit, which a question that is asked again after its deadline would have."""
FIELD = "plan"
"""The field of the form that names the plan that the decision is about."""


class PlanDecision(NamedTuple):
    """A person's decision about a plan.

    :param send: whether the plan may be sent.
    :param by: the person, as Airflow knows them.
    :param plan: what the form named, see :attr:`~airflow_provider_sms.ledger.approvals.PlanExtent.name`, or anything
        else that the person wrote into it; None where the decision came without the form's field.
    :param expired: whether nobody decided in time, which counts as a no.
    """

    send: bool
    by: str
    plan: str | None
    expired: bool = False

    def about(self, questions: Iterable[PlanExtent]) -> list[PlanExtent]:
        """Return the plans that the decision may be about: the one that the form named, or all without its field.

        :param questions: the plans that the task asked about, perhaps about one of them several times.
        :returns: each plan once.
        """
        return list({each.name: each for each in questions if self.plan in (None, each.name)}.values())


def ask_about_requests(
    context: Context, rules: DecisionRules, campaign: str, unknown: int, asked: Sequence[RequestRow]
) -> NoReturn:
    """Ask about unknown requests, and give up the slot until a person decides.

    :param unknown: messages of the task that may have been sent.
    :param asked: the requests that hold these messages, at least one.
    """
    _ask(
        context,
        rules,
        options=list(OPTIONS),
        subject=f"Campaign {code(campaign)}: {_count(unknown)} may have been sent",
        body="\n".join([*_requests_body(campaign, unknown, asked), *rules.describe()]),
    )


def ask_about_plan(
    context: Context,
    rules: DecisionRules,
    plan: Plan,
    samples: Sequence[tuple[str, str]],
    *,
    name: str,
    deadline: datetime | None = None,
) -> NoReturn:
    """Ask whether to send a plan, and give up the slot until a person decides.

    The form has a field that names the plan: a decision about a later plan has to name that plan, and only a person who
    has looked at it knows how.

    :param samples: destinations and texts of some messages; the numbers are masked here.
    :param name: what names the plan and its messages in the form.
    :param deadline: the time by which a person must decide, for a question asked again because a decision did not
        count: such a decision extends nothing. None means that the time limit of the rules starts now.
    """
    _ask(
        context,
        rules,
        options=[SEND, STOP],
        subject=(
            f"Campaign {code(plan.campaign)}: send {_count(plan.to_send)} for about {plan.cost:f} "
            f"{by_count(plan.cost, 'credit')}?"
        ),
        body="\n".join([*_plan_body(plan, samples), *rules.describe()]),
        field=(FIELD, name, "The plan that you are deciding on. Change it only if the log asks for another plan"),
        deadline=deadline,
    )


def record_request_decision(session: LedgerSession, event: Mapping[str, Any], rules: DecisionRules) -> None:
    """Carry out a person's decision about the requests that the task asked about, and record who it was.

    A decision by a person who may not decide does not count, so the task asks again.

    :raises AirflowFailException: the decision is that the task fails.
    :raises InputError: the decision is none of the options.
    """
    decision, by = read_request_decision(event)
    if not _may_decide(event, rules):
        return
    campaigns = {row.campaign for row in questions(session.store, session.who)}
    count = answer(session.store, session.who, decision, by)
    log.info("%s decided about %d unknown %s: %s", by, count, by_count(count, "request"), decision)
    if decision == FAIL:
        stay = by_count(count, "request stays", "requests stay")
        raise AirflowFailException(f"{by} decided that the task fails; {count} {stay} unknown")
    for who in failed_on_unknown(session.store, campaigns):
        if who.task_instance != session.who.task_instance:
            log.info(
                "Failed on unknown requests, too; clear it once this task has ended: %s", task_words(*who.task_instance)
            )


def read_request_decision(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return the decision about unknown requests that Airflow brings back, as the ledger stores it, and the person.

    :raises InputError: it is none of the options.
    """
    return OPTIONS[_chosen(event, OPTIONS)], _person(event)


def is_plan_decision(event: Mapping[str, Any]) -> bool:
    """Return whether Airflow brings back a decision about a plan, or says that the time for one is over."""
    return _has_expired(event) or (set(event.get("chosen_options") or ()) <= {SEND, STOP} and "chosen_options" in event)


def is_refusal(event: object, deadline: datetime | None) -> bool:
    """Return whether Airflow brings back a no to a plan, of anybody, or says that the time for a decision is over.

    :param deadline: as :func:`read_plan_decision` takes it.
    """
    if not isinstance(event, Mapping) or not is_plan_decision(event):
        return False
    return _is_too_late(event, deadline) or event["chosen_options"] != [SEND]


def read_plan_decision(
    event: Mapping[str, Any], rules: DecisionRules, deadline: datetime | None = None
) -> PlanDecision | None:
    """Return the decision about a plan that Airflow brings back; None where the person may not decide.

    :param deadline: a decision after it does not count. Airflow itself still takes one until its scheduler has noticed
        the deadline.
    :raises InputError: it is none of the options.
    """
    if _is_too_late(event, deadline):
        return PlanDecision(send=False, by="nobody", plan=None, expired=True)
    send = _chosen(event, (SEND, STOP)) == SEND
    if not _may_decide(event, rules):
        return None
    named = (event.get("params_input") or {}).get(FIELD)
    return PlanDecision(send, _person(event), None if named is None else str(named).strip())


def _ask(
    context: Context,
    rules: DecisionRules,
    *,
    options: list[str],
    subject: str,
    body: str,
    field: tuple[str, str, str] | None = None,
    deadline: datetime | None = None,
) -> NoReturn:
    """Ask in Airflow's required actions, notify, and give up the slot until a person decides.

    :param options: the options, one of which is chosen.
    :param body: Markdown.
    :param field: name, text and description of a field to fill in; None means no field.
    """
    from airflow.sdk.execution_time.hitl import HITLUser, upsert_hitl_detail

    ti_id: Any = context["ti"].id
    params = {} if field is None else _text_field(*field)
    users = rules.assigned_users
    upsert_hitl_detail(
        ti_id=ti_id,
        options=options,
        subject=subject,
        body=body,
        params=params,
        assigned_users=None if users is None else [HITLUser(id=each.id, name=each.name) for each in users],
    )
    if users is not None:
        ids = ", ".join(each.id for each in users)
        log.info("Only these users may answer, by their ids in Airflow, which does not check that they exist: %s", ids)
    _notify(context, rules)
    now, timeout = datetime.now(timezone.utc), rules.options.timeout
    if deadline is None:
        deadline = None if timeout is None else now + timeout
    else:
        timeout = max(deadline - now, _SHORTEST_TIMEOUT)
    kwargs = None if deadline is None else {"deadline": deadline.isoformat()}
    try:
        from airflow.sdk.exceptions import TaskAwaitingInput
    except ImportError:  # before 3.3 a trigger has to wait
        from airflow.providers.standard.triggers.hitl import HITLTrigger

        trigger = HITLTrigger(
            ti_id=ti_id, options=options, params=params, defaults=None, multiple=False, timeout_datetime=deadline
        )
        raise TaskDeferred(trigger=trigger, method_name=RESUME_METHOD, kwargs=kwargs) from None
    raise TaskAwaitingInput(method_name=RESUME_METHOD, kwargs=kwargs, timeout=timeout)


def _notify(context: Context, rules: DecisionRules) -> None:
    """Notify people that a question is waiting. A failed notifier is logged; Airflow shows the question anyway."""
    for notifier in rules.options.notifiers:
        try:
            # A copy, since a notifier writes its template fields into the context.
            notifier({**context})
        except Exception as error:  # noqa: BLE001  # a notifier can fail in any way, and its words may hold a number
            log.warning(
                "%s failed with %s: nobody was notified by it. The question waits in Airflow's required actions",
                type(notifier).__name__,
                type(error).__name__,
            )


def _text_field(name: str, value: str, description: str) -> dict[str, Any]:
    from airflow.sdk import Param

    return {name: Param(value, type="string", description=description).serialize()}


def _chosen(event: Mapping[str, Any], options: Collection[str]) -> str:
    """Return the option that was chosen.

    :raises InputError: it is none of these, or not exactly one.
    """
    chosen = event.get("chosen_options") or []
    if len(chosen) != 1 or chosen[0] not in options:
        raise InputError(f"The answer must be one of {', '.join(options)}")
    return str(chosen[0])


def _may_decide(event: Mapping[str, Any], rules: DecisionRules) -> bool:
    """Return whether the person who answered may decide; log why not."""
    refusal = rules.refusal(event.get("responded_by_user") or {})
    if refusal is not None:
        log.warning(
            "The decision of %s does not count, since that user %s: the task asks again", _person(event), refusal
        )
    return refusal is None


def _is_too_late(event: Mapping[str, Any], deadline: datetime | None) -> bool:
    return _has_expired(event) or (deadline is not None and _decided_at(event) > deadline)


def _has_expired(event: Mapping[str, Any]) -> bool:
    return event.get("error_type") == "timeout"


def _decided_at(event: Mapping[str, Any]) -> datetime:
    """Return when a person decided; now where Airflow does not say."""
    at = event.get("responded_at")
    return at if isinstance(at, datetime) else datetime.now(timezone.utc)


def _person(event: Mapping[str, Any]) -> str:
    """Return the person who decided, as Airflow knows them."""
    user = event.get("responded_by_user") or {}
    return str(user.get("name") or user.get("id") or SOMEBODY)


def _count(messages: int) -> str:
    return f"{messages} {by_count(messages, 'message')}"


def _requests_body(campaign: str, unknown: int, asked: Sequence[RequestRow]) -> list[str]:
    listed = asked[:MAX_LISTED]
    told = [question.evidence for question in listed if question.evidence is not None]
    if not told:
        first = _ASK_THE_SERVICE
    elif all(each.verdict == UNDECIDED for each in told):
        first = f"{_ASK_THE_SERVICE} {_LATER_THE_BALANCE}"
    else:
        first = _FIRST_THE_BALANCE
    lines = [
        (
            f"{lost_words(asked).capitalize()}, so {_count(unknown)} of campaign {code(campaign)} "
            f"{by_count(unknown, 'was texted, or was', 'were texted, or were')} not."
        ),
        f"Everything else is done. {first}",
        "",
        f"| Request |{' What the balance says |' if told else ''} Messages | Sent at (UTC) | Why it is unknown |",
        f"|---|{'---|' if told else ''}---|---|---|",
    ]
    for question in listed:
        when = datetime.fromtimestamp(question.claimed_at, timezone.utc)
        says = f" {cell(verdict_words(question.evidence))} |" if told else ""
        why = cell(question.reason or "")
        lines.append(f"| {question.request_id} |{says} {question.messages} | {when:%Y-%m-%d %H:%M:%S} | {why} |")
    if (more := len(asked) - MAX_LISTED) > 0:
        lines += ["", f"… and {more} more {by_count(more, 'request')}: see `airflow-sms ledger unknown`."]
    if words := sentences(told):
        lines += ["", "What the balance says:", "", *(f"- {code(each)}" for each in words)]
    if len({verdict_words(question.evidence) for question in listed}) > 1:
        lines += ["", _ONE_ANSWER]
    return [
        *lines,
        "",
        "- **Resend**: they are texted again. People who got the first text get a second one.",
        "- **Treat as sent**: they are not texted again. People who did not get the text go without it.",
        "- **Fail**: the task fails, and the requests stay unknown.",
    ]


def _plan_body(plan: Plan, samples: Sequence[tuple[str, str]]) -> list[str]:
    lines = [f"Plan {code(plan.id)}:", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {cell(value)} |" for name, value in plan.lines()]
    if plan.repeats:
        lines += ["", f"**{repeats_in_words(plan.repeats, code(plan.campaign))}.** {REPEATS_ADVICE}."]
    lines += ["", "Some of the messages:", ""]
    for destination, content in samples:
        lines += [code(mask_number(destination)), "", *block(content), ""]
    return [
        *lines,
        "- **Send**: the messages go out; nothing sent can be called back.",
        "- **Stop**: the task fails, and nothing more is sent.",
        "",
        (
            "If the recipients change before they are texted, this question comes back, perhaps after some messages "
            "were sent. Airflow shows it as it stands here; the plan that is meant is then in the XCom "
            f"`{PLAN}` and in the task's log, which also says what belongs in the field."
        ),
    ]
