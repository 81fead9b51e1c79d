"""Why a campaign is in its state, and what to do about it, in sentences for its page and for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sms.formatting import by_count, counted, duration, money
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.monitoring import status

if TYPE_CHECKING:
    from airflow_provider_sms.monitoring.models import Attempt, Campaign


def reasons(campaign: Campaign, now: float) -> list[str]:
    """Return why a campaign is in its state, and what to do about it, but for its unknown requests."""
    sentences = [_waiting(each) for each in campaign.attempts]
    if campaign.state == status.PAUSED:
        sentences.append("It is paused: nothing more is claimed before a person resumes it.")
    for each in campaign.attempts:
        if each.silent:
            missed = f" {counted(each.remaining, 'row')} may not have been reached." if each.remaining else ""
            sentences.append(
                f"{each.name} has reported nothing for {duration(now - each.updated_at)}, and has probably "
                f"ended.{missed} If Airflow does not retry it, clear the task."
            )
        elif each.state == AttemptState.FAILED:
            first = "close its unknown requests, " if campaign.counts.unknown_requests else ""
            sentences.append(f"{each.name} failed. Its log says why; {first}then clear the task.")
    if campaign.state != status.ATTENTION:
        return [each for each in sentences if each]
    if again := campaign.counts.again:
        them = by_count(again, "it", "them")
        sentences.append(
            f"{counted(again, 'message')} may have been sent. Clear the task: its next attempt sends {them} again."
        )
    if freed := campaign.counts.freed:
        them = by_count(freed, "it", "them")
        sentences.append(f"{counted(freed, 'message')} closed as not sent. Clear the task to send {them}.")
    if left := sum(each.not_sent or 0 for each in campaign.attempts):
        them = by_count(left, "it", "them")
        sentences.append(
            f"{counted(left, 'row')} not sent. The task's log says why; once that is solved, clear the task to send "
            f"{them}."
        )
    return [each for each in sentences if each]


def _waiting(attempt: Attempt) -> str:
    state, figures = attempt.state, attempt.figures
    if state == AttemptState.WAITING_FOR_CREDIT:
        return f"{attempt.name} waits until the balance is {money(figures.get('balance_needed'))}."
    if state == AttemptState.WAITING_FOR_HOURS:
        until = str(figures.get("until", "")).replace("T", " ")
        return f"{attempt.name} waits for its sending hours{f', until {until}' if until else ''}."
    return ""
