"""Why a campaign is in its state, and what to do about it, in sentences for its page and for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sms.formatting import by_count, counted, duration, money
from airflow_provider_sms.ledger.approvals import SEND
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.monitoring import status

if TYPE_CHECKING:
    from airflow_provider_sms.monitoring.audit_log import AskedPlan
    from airflow_provider_sms.monitoring.models import Attempt, Campaign


def reasons(campaign: Campaign, now: float, asked: AskedPlan | None = None, unknown: str = "") -> list[str]:
    """Return why a campaign is in its state, and what to do about it.

    :param now: seconds since the epoch.
    :param asked: the plan that a person was asked about last; None means that nobody was asked.
    :param unknown: the sentence about its unknown messages; empty where there are none.
    """
    sentences = [_waiting(each) for each in campaign.attempts]
    sentences.append(unknown)
    for each in campaign.attempts:
        if each.silent:
            missed = f" {counted(each.remaining, 'row')} may not have been reached." if each.remaining else ""
            sentences.append(
                f"{_name(each)} has reported nothing for {duration(now - each.progress.updated_at)}, and has probably "
                f"ended.{missed} If Airflow does not retry it, clear the task."
            )
        elif each.progress.state == AttemptState.FAILED:
            sentences.append(f"{_name(each)} failed. Its log says why.")
    if campaign.not_sent and campaign.state == status.ATTENTION:
        sentences.append(f"{counted(campaign.not_sent, 'row')} not sent. {_next_step(campaign.not_sent, asked)}")
    if campaign.state == status.EARLIER:
        sentences.append(
            "It was sent by a version of this package that recorded no progress: only its requests are known."
        )
    return [each for each in sentences if each]


def _next_step(not_sent: int, asked: AskedPlan | None) -> str:
    if asked is None:
        return f"Clear the task: its next attempt sends {by_count(not_sent, 'it', 'them')}."
    if asked.decision == SEND:
        return (
            "Clear the task: it sends what was approved, and asks about the rest; or sends all if its DAG asks no "
            "longer."
        )
    decided = f"{asked.decided_by or 'Nobody'} {'refused' if asked.decision else 'has approved'} plan {asked.plan_id}"
    return f"{decided}. Clear the task: it asks again, or sends if its DAG asks no longer."


def _name(attempt: Attempt) -> str:
    progress = attempt.progress
    mapped = "" if progress.map_index < 0 else f" [{progress.map_index}]"
    return f"Attempt {attempt.try_number} of task {progress.task_id}{mapped}"


def _waiting(attempt: Attempt) -> str:
    state, figures = attempt.progress.state, attempt.figures
    if state == AttemptState.WAITING_FOR_CREDIT:
        return f"{_name(attempt)} waits until the balance is {money(figures.get('balance_needed'))}."
    if state == AttemptState.WAITING_FOR_HOURS:
        until = str(figures.get("until", "")).replace("T", " ")
        return f"{_name(attempt)} waits for its sending hours{f', until {until}' if until else ''}."
    if state == AttemptState.WAITING_FOR_APPROVAL:
        return (
            f"{_name(attempt)} waits for a person to approve {counted(int(figures.get('to_send', 0)), 'message')}, in "
            "Airflow's required actions."
        )
    if state == AttemptState.WAITING_FOR_ANSWER:
        return f"{_name(attempt)} waits for a person to decide about unknown messages, in Airflow's required actions."
    return ""
