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
    # Where it is below zero, the source has lost rows whose messages an earlier part of this try sent.
    return {
        "campaign": campaign,
        "rows": rows,
        "accepted": tally.accepted + min(0, unreached),
        "unknown": tally.unresolved,
        "not_sent": tally.not_sent + max(0, unreached),
        "invalid": invalid,
        "duplicate": tally.repeated,
        "suppressed": tally.suppressed + tally.capped,
        "already_sent": tally.already_sent,
        "requests": tally.requests,
        "parts": tally.parts,
        "cost": float(tally.cost),
        "remaining_balance": None if tally.remaining_balance is None else float(tally.remaining_balance),
        "event_ids": _event_ids(tally),
        **told_by_service(tally),
        "report": None,
    }


def told_by_service(tally: Tally) -> dict[str, Any]:
    """Give the part of a summary that sums up the service's own reports: ``cost_breakdown`` and ``error_report``."""
    return {
        "cost_breakdown": {
            network: {"cost": float(cost), "quantity": quantity}
            for network, (cost, quantity) in tally.cost_breakdown.items()
        },
        "error_report": dict(tally.error_report),
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
