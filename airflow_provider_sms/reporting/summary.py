"""The summary that a task returns: small, however large the send, since Airflow stores it as an XCom."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT
from airflow_provider_sms.reporting.row_counts import COUNTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sms.ledger.model import SentRequest
    from airflow_provider_sms.reporting.row_counts import RowCounts

MAX_NETWORKS = 10
"""Networks that are named; the others, which cost least, are together in :data:`OTHERS`."""
OTHERS = "others"
COUNTERS = ("NoNetwork", "Duplicates", "OptedOuts", "Faults")
"""Counts of the service's error report. It may add others of any name."""


@dataclass(slots=True)
class Sums:
    """What the requests of an attempt add up to, those of its processes before a wait included.

    :param cost: credits; of a request whose response was lost, what the balance has shown.
    :param of_unknown_cost: requests of which nothing tells the cost.
    :param none_taken: messages of requests of which it took none.
    """

    requests: int = 0
    parts: int = 0
    cost: Decimal = Decimal(0)
    of_unknown_cost: int = 0
    left_out: int = 0
    none_taken: int = 0
    remaining_balance: Decimal | None = None
    cost_breakdown: dict[str, tuple[Decimal, int]] = field(default_factory=dict)
    error_report: Counter[str] = field(default_factory=Counter)


@own_decimals()
def add_up(requests: Iterable[SentRequest]) -> Sums:
    """Return what the requests of an attempt add up to."""
    sums, last = Sums(), (0.0, Decimal("-Infinity"))
    for each in requests:
        if each.response is not None:  # as :func:`~airflow_provider_sms.service.redaction.redacted_response` made it
            response = json.loads(each.response, parse_float=Decimal)
            for line in response["CostBreakDown"]:
                cost, quantity = sums.cost_breakdown.get(line["Network"], (Decimal(0), 0))
                sums.cost_breakdown[line["Network"]] = (cost + line["Cost"], quantity + line["Quantity"])
            for name, count in response["ErrorReport"].items():
                sums.error_report[name] += len(count) if name == "Faults" else count
            balance = Decimal(response["RemainingBalance"])
            # Of responses that were recorded at once, the last one states the least.
            at = each.finished_at or 0.0, -balance
            if at >= last:
                sums.remaining_balance, last = balance, at
        if each.state == NOT_SENT:
            sums.none_taken += each.submitted
            continue
        sums.requests += 1
        sums.parts += each.parts or 0
        sums.cost += Decimal(each.cost or 0)
        sums.of_unknown_cost += each.cost is None
        if each.state == ACCEPTED and each.taken is not None:
            sums.left_out += max(0, each.submitted - each.taken)
    return sums


@own_decimals()
def summarise(
    campaign: str, counts: RowCounts, sums: Sums, reconciled: int = 0, report: str | None = None
) -> dict[str, Any]:
    """Return the summary of one attempt.

    :param reconciled: messages of requests that the balance closed; they are in another count, too.
    """
    dearest = sorted(sums.cost_breakdown.items(), key=lambda each: -each[1][0])
    networks = {name: {"cost": float(cost), "quantity": quantity} for name, (cost, quantity) in dearest[:MAX_NETWORKS]}
    if rest := [each for _, each in dearest[MAX_NETWORKS:]]:
        networks[OTHERS] = {"cost": float(sum(cost for cost, _ in rest)), "quantity": sum(count for _, count in rest)}
    return {
        "campaign": campaign,
        "rows": counts.rows,
        **{name: getattr(counts, name) for name in COUNTS},
        "reconciled": reconciled,
        "left_out": sums.left_out,
        "requests": sums.requests,
        "parts": sums.parts,
        "cost": float(sums.cost),
        "remaining_balance": None if sums.remaining_balance is None else float(sums.remaining_balance),
        "cost_breakdown": networks,
        "error_report": {name: sums.error_report[name] for name in COUNTERS},
        "report": report,
    }
