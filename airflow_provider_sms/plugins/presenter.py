"""Sentences and figures on a campaign's page: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sms.formatting import by_count, counted
from airflow_provider_sms.monitoring import status

if TYPE_CHECKING:
    from airflow_provider_sms.monitoring.models import Campaign


def unknown_words(campaign: Campaign) -> str:
    """Return what to do about messages whose outcome is unknown, and that no attempt sends; empty: there are none."""
    if not (unknown := campaign.counts.unknown - campaign.counts.again):
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
