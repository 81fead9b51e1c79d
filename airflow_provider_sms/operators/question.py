"""A question to a person, in Airflow's required actions, about what became of unknown requests."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.sending.claims import ACCEPTED
from airflow_provider_sms.sending.decisions import FAIL, RESEND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.providers.common.compat.sdk import BaseOperator, Context

    from airflow_provider_sms.sending.decisions import Question

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


def require_asking() -> None:
    """Refuse to ask where Airflow cannot.

    :raises InputError: says from which version on it can.
    """
    try:
        import airflow.sdk.execution_time.hitl  # noqa: F401
    except ImportError as error:
        raise InputError(
            "on_unknown='ask' needs Airflow 3.1 or newer, which can ask a person: use 'fail' or 'resend'"
        ) from error


def wait_for_answer(
    task: BaseOperator, context: Context, campaign: str, unknown: int, asked: Sequence[Question]
) -> NoReturn:
    """Ask, and give up the slot until somebody answers; Airflow goes on with ``execute_complete`` then.

    :param unknown: messages of the task that may have been sent.
    :param asked: the requests that they are in, at least one.
    """
    from airflow.sdk.execution_time.hitl import upsert_hitl_detail

    ti_id: Any = context["ti"].id
    options = list(OPTIONS)
    upsert_hitl_detail(
        ti_id=ti_id,
        options=options,
        subject=_subject(campaign, unknown),
        body=_body(campaign, unknown, asked),
        params={},
    )
    try:
        from airflow.sdk.exceptions import TaskAwaitingInput
    except ImportError:  # before 3.3 a trigger has to wait
        from airflow.providers.standard.triggers.hitl import HITLTrigger

        trigger = HITLTrigger(
            ti_id=ti_id, options=options, params={}, defaults=None, multiple=False, timeout_datetime=None
        )
        task.defer(trigger=trigger, method_name=RESUME_METHOD)
    raise TaskAwaitingInput(method_name=RESUME_METHOD)


def read_answer(event: Mapping[str, Any]) -> Answer:
    """Read what Airflow brings back.

    :raises InputError: it is none of the options.
    """
    chosen = event.get("chosen_options") or []
    if len(chosen) != 1 or chosen[0] not in OPTIONS:
        raise InputError(f"The answer must be one of {', '.join(OPTIONS)}")
    user = event.get("responded_by_user") or {}
    return Answer(OPTIONS[chosen[0]], str(user.get("name") or user.get("id") or "somebody in Airflow"))


def _subject(campaign: str, unknown: int) -> str:
    return f"Campaign {campaign}: {_count(unknown)} may have been sent"


def _count(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages} messages"


def _body(campaign: str, unknown: int, asked: Sequence[Question]) -> str:
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
