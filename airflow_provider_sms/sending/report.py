"""The summary that a task returns: JSON, of constant size whatever was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_sms.sending.tally import Tally


COUNTS = ("accepted", "unknown", "not_sent", "invalid", "duplicate", "suppressed", "already_sent")
"""What can become of a row; the counts add up to ``rows``."""


def summarise(campaign: str, rows: int, invalid: int, tally: Tally) -> dict[str, Any]:
    """Give the summary of one try.

    ``rows`` equals the sum of the seven counts after it: what no request, no earlier claim and no check accounts for
    was not sent. Event ids are text, since JavaScript readers round 64-bit integers; above the tally's limit there are
    none.

    :param rows: rows of the source.
    :param invalid: of these, rows that cannot be texted.
    """
    unreached = rows - invalid - tally.settled
    return {
        "campaign": campaign,
        "rows": rows,
        "accepted": tally.accepted,
        "unknown": tally.unknown,
        "not_sent": tally.not_sent + unreached,
        "invalid": invalid,
        "duplicate": tally.duplicate,
        "suppressed": 0,
        "already_sent": tally.already_sent,
        "requests": tally.requests,
        "parts": tally.parts,
        "cost": float(tally.cost),
        "remaining_balance": None if tally.remaining_balance is None else float(tally.remaining_balance),
        "event_ids": _event_ids(tally),
        "cost_breakdown": {
            network: {"cost": float(cost), "quantity": quantity}
            for network, (cost, quantity) in tally.cost_breakdown.items()
        },
        "error_report": dict(tally.error_report),
        "report": None,
    }


def continued(before: dict[str, Any] | None, after: dict[str, Any], max_event_ids: int) -> dict[str, Any]:
    """Give the summary of a try that waited for a person in between.

    What the first part knew stays; only what was unknown to it can have become something else since.

    :param before: that of its first part; None where there is none.
    :param after: that of the part since, which met again everything that the first one had sent.
    :param max_event_ids: above that many requests there are none.
    """
    if before is None:
        return after
    if not (after["rows"] == before["rows"] and after["invalid"] == before["invalid"]):
        return before  # it ended before it came to send, or the table is another one
    if after["not_sent"] and not (after["requests"] or after["already_sent"]):
        return before  # nothing was looked up
    unknown = min(after["unknown"], before["unknown"])
    not_sent = min(after["not_sent"], before["unknown"] - unknown)
    requests = before["requests"] + after["requests"]
    balance = before["remaining_balance"] if after["remaining_balance"] is None else after["remaining_balance"]
    return {
        **before,
        "accepted": before["accepted"] + before["unknown"] - unknown - not_sent,
        "unknown": unknown,
        "not_sent": before["not_sent"] + not_sent,
        "requests": requests,
        "parts": before["parts"] + after["parts"],
        "cost": before["cost"] + after["cost"],
        "remaining_balance": balance,
        "event_ids": [] if requests > max_event_ids else before["event_ids"] + after["event_ids"],
        "cost_breakdown": _added(before["cost_breakdown"], after["cost_breakdown"]),
        "error_report": {
            name: before["error_report"].get(name, 0) + after["error_report"].get(name, 0)
            for name in {**before["error_report"], **after["error_report"]}
        },
    }


def _added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    nothing = {"cost": 0.0, "quantity": 0}
    return {
        network: {name: one.get(network, nothing)[name] + other.get(network, nothing)[name] for name in nothing}
        for network in {**one, **other}
    }


def facts(summary: dict[str, Any]) -> dict[str, Any]:
    """Give of a summary what is of use to those who did not send: counts, cost, balance; nothing by request."""
    names = ("campaign", "rows", *COUNTS, "requests", "parts", "cost", "remaining_balance")
    return {name: summary[name] for name in names}


def one_line(summary: dict[str, Any]) -> str:
    """Give the summary as a line for the log."""
    counts = ", ".join(f"{name} {summary[name]}" for name in ("rows", *COUNTS))
    return (
        f"Campaign {summary['campaign']}: {counts}; "
        f"{summary['requests']} requests, {summary['parts']} parts, cost {summary['cost']}"
    )


def _event_ids(tally: Tally) -> list[str]:
    """Give the event ids in request order; none where there are too many for an XCom."""
    if tally.requests > tally.max_event_ids:
        return []
    return [str(event_id) for _, event_id in sorted(tally.event_ids.items())]
