"""Sentences and figures on a campaign's page: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sms.formatting import UNKNOWN, at_least, by_count, counted, money, number
from airflow_provider_sms.monitoring import status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sms.monitoring.models import Campaign
    from airflow_provider_sms.monitoring.plan_comparison import PlanComparison


class ComparisonRow(NamedTuple):
    """A figure of the plan beside the actual one."""

    name: str
    planned: str
    actual: str


def unknown_words(campaign: Campaign) -> str:
    """Return what to do about messages whose outcome is unknown; empty where there are none."""
    if not (unknown := campaign.counts.unknown):
        return ""
    return (
        f"{counted(unknown, 'message has', 'messages have')} no outcome yet. Find out below whether "
        f"{by_count(unknown, 'it was', 'they were')} sent, and record it."
    )


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
    remaining = sum(each.remaining for each in campaign.attempts if campaign.state in status.LIVE or each.silent)
    return max(0, remaining - campaign.counts.under_way)


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
        ComparisonRow("cost", money(planned("cost")), at_least(money(counts.cost), counts.of_unknown_cost)),
        ComparisonRow("invalid rows", number(invalid), number(campaign.invalid)),
        ComparisonRow("suppressed", number(suppressed), so_far("suppressed")),
        ComparisonRow("duplicate", number(planned("duplicate")), so_far("duplicate")),
    ]
