"""What a campaign's page says of it, in words and figures: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sms.formatting import UNKNOWN, counted, duration, money, number
from airflow_provider_sms.monitoring import status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sms.monitoring.models import Campaign, TryNote
    from airflow_provider_sms.monitoring.plan_comparison import Run


class Compared(NamedTuple):
    """A figure of the plan, and what it came to."""

    name: str
    planned: str
    came_to: str


def reasons(campaign: Campaign, now: float) -> list[str]:
    """Say why a campaign stands as it does, and what is to be done.

    :param now: seconds since the epoch.
    """
    said = [_waiting(each) for each in campaign.tries]
    if campaign.counts.unknown:
        said.append(
            f"What became of {counted(campaign.counts.unknown, 'message')} is unknown: ask the service, then say below "
            "whether they were sent."
        )
    for each in campaign.tries:
        if each.silent:
            ago = duration(now - each.note.updated_at)
            left = _left_of(each)
            of_these = f" {counted(left, 'row')} may not have been reached." if left else ""
            said.append(
                f"{_name(each)} said nothing for {ago}, and has probably ended.{of_these} Airflow starts it again if "
                "it has retries left; else clear it."
            )
        elif each.note.state == "failed":
            said.append(f"{_name(each)} failed. Its log says why.")
    if campaign.not_sent and campaign.state == status.ATTENTION:
        said.append(f"{counted(campaign.not_sent, 'row')} not sent. Clear the task, and it goes on with them.")
    if campaign.state == status.EARLIER:
        said.append("It was sent by a version of this package that left no notes: only its requests are known.")
    return [each for each in said if each]


def _name(each: TryNote) -> str:
    note = each.note
    mapped = "" if note.map_index < 0 else f" [{note.map_index}]"
    return f"Try {each.try_number} of task {note.task_id}{mapped}"


def _waiting(each: TryNote) -> str:
    state, figures = each.note.state, each.figures
    if state == "waiting for credit":
        return f"{_name(each)} waits until the balance is {money(figures.get('balance_needed'))}."
    if state == "waiting for hours":
        until = str(figures.get("until", "")).replace("T", " ")
        return f"{_name(each)} waits for its hours{f', until {until}' if until else ''}."
    if state == "waiting for approval":
        return (
            f"{_name(each)} waits for a person to approve {counted(int(figures.get('to_send', 0)), 'message')}, in "
            "Airflow's required actions."
        )
    if state == "waiting for an answer":
        return (
            f"{_name(each)} waits for a person to say what became of unknown messages, in Airflow's required actions."
        )
    return ""


def outcomes(campaign: Campaign) -> list[tuple[str, int]]:
    """Give how many messages or rows became what; what no row became is left out, but for who was texted."""
    counts = campaign.counts
    left = _left(campaign)
    lines = [
        ("accepted", counts.accepted),
        ("under way", counts.under_way),
        ("unknown", counts.unknown),
        ("still to do", left),
        ("left out by the service", counts.left_out),
        ("not sent", campaign.not_sent or 0),
        ("invalid", campaign.invalid or 0),
        ("suppressed", _figure(campaign, "suppressed")),
        ("duplicate", _figure(campaign, "duplicate")),
    ]
    return [(name, count) for name, count in lines if count or name == "accepted"]


def _left(campaign: Campaign) -> int:
    """Count the rows that are still to be done, or that a process did not come to before it ended."""
    left = sum(_left_of(each) for each in campaign.tries if campaign.state in status.LIVE or each.silent)
    return max(0, left - campaign.counts.under_way)


def _left_of(each: TryNote) -> int:
    return 0 if each.total is None or each.done is None else max(0, each.total - each.done)


def _figure(campaign: Campaign, name: str) -> int:
    found = [each.figures.get(name) for each in campaign.tries]
    return sum(value for value in found if isinstance(value, int))


def encodings(plans: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, int]]:
    """Give encoding, messages and SMS parts of what was planned."""
    total: dict[str, tuple[int, int]] = {}
    for plan in plans:
        for name, encoded in plan.get("texts", {}).get("encodings", {}).items():
            messages, parts = total.get(name, (0, 0))
            total[name] = messages + encoded["messages"], parts + encoded["parts"]
    return [(name, messages, parts) for name, (messages, parts) in total.items() if messages]


def compared(campaign: Campaign, run: Run) -> list[Compared]:
    """Give the plan of the runs that count beside what happened in them; empty where there was no plan."""
    plans, counts = run.plans, run.counts
    if not plans:
        return []

    def planned(name: str) -> float:
        return sum(plan.get(name) or 0 for plan in plans)

    def so_far(name: str) -> str:
        return number(_figure(campaign, name)) if all(name in each.figures for each in campaign.tries) else UNKNOWN

    invalid = sum(sum(plan.get("invalid", {}).values()) for plan in plans)
    suppressed = sum(sum(plan.get("suppressed", {}).values()) for plan in plans)
    return [
        Compared("rows", number(planned("rows")), so_far("rows")),
        Compared("messages", number(planned("to_send")), number(counts.accepted)),
        Compared("SMS parts", number(planned("parts")), number(counts.parts)),
        Compared("cost", money(planned("cost")), money(counts.cost)),
        Compared("invalid rows", number(invalid), number(campaign.invalid)),
        Compared("suppressed", number(suppressed), so_far("suppressed")),
        Compared("duplicate", number(planned("duplicate")), so_far("duplicate")),
    ]
