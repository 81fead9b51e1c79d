"""Sentences and figures on a campaign's page: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sms.formatting import UNKNOWN, by_count, counted, duration, money, number
from airflow_provider_sms.ledger.approvals import SEND
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.monitoring import status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sms.monitoring.audit_log import AskedPlan
    from airflow_provider_sms.monitoring.models import Attempt, Campaign
    from airflow_provider_sms.monitoring.plan_comparison import PlanComparison


class ComparisonRow(NamedTuple):
    """A figure of the plan beside the actual one."""

    name: str
    planned: str
    actual: str


def reasons(campaign: Campaign, now: float, asked: AskedPlan | None = None) -> list[str]:
    """Return why a campaign is in its state, and what to do about it.

    :param now: seconds since the epoch.
    :param asked: the plan that a person was asked about last; None means that nobody was asked.
    """
    sentences = [_waiting(each) for each in campaign.attempts]
    if unknown := campaign.counts.unknown:
        sentences.append(
            f"{counted(unknown, 'message has', 'messages have')} no outcome yet. Find out below whether "
            f"{by_count(unknown, 'it was', 'they were')} sent, and record it."
        )
    for each in campaign.attempts:
        if each.silent:
            remaining = _remaining_of(each)
            missed = f" {counted(remaining, 'row')} may not have been reached." if remaining else ""
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


def outcomes(campaign: Campaign) -> list[tuple[str, int]]:
    """Return messages or rows by outcome, leaving out outcomes without any, except accepted."""
    counts = campaign.counts
    remaining = _remaining(campaign)
    lines = [
        ("accepted", counts.accepted),
        ("under way", counts.under_way),
        ("unknown", counts.unknown),
        ("still to do", remaining),
        ("left out by the service", counts.left_out),
        ("not sent", campaign.not_sent or 0),
        ("invalid", campaign.invalid or 0),
        ("suppressed", _figure(campaign, "suppressed")),
        ("duplicate", _figure(campaign, "duplicate")),
    ]
    return [(name, count) for name, count in lines if count or name == "accepted"]


def _remaining(campaign: Campaign) -> int:
    """Count the rows that running attempts will still reach, or that a process did not reach before it ended."""
    remaining = sum(_remaining_of(each) for each in campaign.attempts if campaign.state in status.LIVE or each.silent)
    return max(0, remaining - campaign.counts.under_way)


def _remaining_of(attempt: Attempt) -> int:
    return 0 if attempt.total is None or attempt.done is None else max(0, attempt.total - attempt.done)


def _figure(campaign: Campaign, name: str) -> int:
    found = [each.figures.get(name) for each in campaign.attempts]
    return sum(value for value in found if isinstance(value, int))


def encodings(plans: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, int]]:
    """Return messages and SMS parts of plans, by encoding."""
    total: dict[str, tuple[int, int]] = {}
    for plan in plans:
        for name, encoded in plan.get("texts", {}).get("encodings", {}).items():
            messages, parts = total.get(name, (0, 0))
            total[name] = messages + encoded["messages"], parts + encoded["parts"]
    return [(name, messages, parts) for name, (messages, parts) in total.items() if messages]


def comparison_rows(campaign: Campaign, comparison: PlanComparison) -> list[ComparisonRow]:
    """Return figures of the plan beside the actual ones; empty if there was no plan."""
    plans, counts = comparison.plans, comparison.counts
    if not plans:
        return []

    def planned(name: str) -> float:
        return sum(plan.get(name) or 0 for plan in plans)

    def so_far(name: str) -> str:
        return number(_figure(campaign, name)) if all(name in each.figures for each in campaign.attempts) else UNKNOWN

    invalid = sum(sum(plan.get("invalid", {}).values()) for plan in plans)
    suppressed = sum(sum(plan.get("suppressed", {}).values()) for plan in plans)
    return [
        ComparisonRow("rows", number(planned("rows")), so_far("rows")),
        ComparisonRow("messages", number(planned("to_send")), number(counts.accepted)),
        ComparisonRow("SMS parts", number(planned("parts")), number(counts.parts)),
        ComparisonRow("cost", money(planned("cost")), money(counts.cost)),
        ComparisonRow("invalid rows", number(invalid), number(campaign.invalid)),
        ComparisonRow("suppressed", number(suppressed), so_far("suppressed")),
        ComparisonRow("duplicate", number(planned("duplicate")), so_far("duplicate")),
    ]
