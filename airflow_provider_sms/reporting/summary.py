"""The summary that a task returns.

The summary is JSON below 2 kB, whatever the size of the send, since Airflow stores it as an XCom.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.exceptions import SmsError
from airflow_provider_sms.formatting import at_least, by_count, counted
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.service.responses import parse_send_response

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.sending.counts import SendCounts
    from airflow_provider_sms.service.responses import SendResponse


COUNTS = ("accepted", "unknown", "not_sent", "invalid", "duplicate", "suppressed", "already_sent")
"""The counts of which each row is in exactly one; they add up to ``rows``."""
MAX_BYTES = 1_900
"""Bytes of the summary as JSON."""
MAX_NAME_BYTES, MAX_PLACE_BYTES = 800, 300
"""Those of the campaign's name, and of the place of the row report."""
COUNTERS = ("NoNetwork", "Duplicates", "OptedOuts", "Faults")
"""Counts of the service's error report. It may add others of any name."""
OTHERS = "others"
"""Stands for the networks that cost least, where there are many."""


def summarise(campaign: str, rows: int, invalid: int, counts: SendCounts) -> dict[str, Any]:
    """Return the summary of one attempt.

    ``rows`` equals the sum of the seven counts after it: a row that no request, no earlier claim and no check accounts
    for was not sent. ``reconciled`` is not one of these, and ``left_out`` is a part of ``not_sent``. Of a request whose
    response was lost, ``cost`` has what the balance has shown.

    :param rows: rows of the source.
    :param invalid: how many of these cannot be texted.
    """
    unreached = rows - invalid - counts.settled
    lost = min(counts.unread_unknown, max(0, unreached))
    # Below zero, the source has lost rows whose messages an earlier leg of this attempt sent, and was not compared.
    summary = {
        "campaign": _fitting(campaign, MAX_NAME_BYTES),
        "rows": rows,
        "accepted": counts.accepted_rows + min(0, unreached),
        "unknown": counts.unknown + lost,
        "not_sent": counts.unsent_rows + max(0, unreached) - lost,
        "invalid": invalid,
        "duplicate": counts.duplicate,
        "suppressed": counts.suppressed,
        "already_sent": counts.already_sent,
        "reconciled": counts.reconciled,
        "left_out": counts.partial,
        "requests": counts.requests,
        "parts": counts.parts,
        "cost": float(counts.cost),
        "remaining_balance": None if counts.remaining_balance is None else float(counts.remaining_balance),
        **told_by_service(counts),
    }
    return with_report(summary, None)


def with_report(summary: dict[str, Any], report: str | None) -> dict[str, Any]:
    """Return a summary with the place of the row report, below 2 kB.

    The networks that cost least go into one, ``others``, as far as it takes that.
    """
    kept = {**summary, "report": None if report is None else _fitting(report, MAX_PLACE_BYTES)}
    networks = kept["cost_breakdown"] = dict(kept["cost_breakdown"])
    while len(networks) > 1 and len(json.dumps(kept)) > MAX_BYTES:
        least = sorted(networks.keys() - {OTHERS}, key=lambda each: networks[each]["cost"])
        gone, others = networks.pop(least[0]), networks.get(OTHERS, {"cost": 0.0, "quantity": 0})
        networks[OTHERS] = {name: others[name] + gone[name] for name in others}
    return kept


def _fitting(text: str, most: int) -> str:
    """Return a text that takes at most so many bytes as JSON; a longer one ends with an ellipsis."""
    if len(json.dumps(text)) <= most:
        return text
    while len(json.dumps(text)) + len(r"\u2026") > most:
        text = text[:-1]
    return f"{text}…"


def told_by_service(counts: SendCounts) -> dict[str, Any]:
    """Return the fields of a summary that add up the service's own reports: ``cost_breakdown`` and ``error_report``."""
    return {
        "cost_breakdown": {
            network: {"cost": float(cost), "quantity": quantity}
            for network, (cost, quantity) in counts.cost_breakdown.items()
        },
        "error_report": {name: counts.error_report.get(name, 0) for name in COUNTERS},
    }


def facts(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a summary that are of use to other tasks: counts, cost and balance; nothing by request."""
    names = ("campaign", "rows", *COUNTS, "reconciled", "requests", "parts", "cost", "remaining_balance")
    return {name: summary[name] for name in names}


def one_line(summary: dict[str, Any], of_unknown_cost: int = 0) -> str:
    """Return the summary as a line for the log.

    :param of_unknown_cost: requests of which nothing tells the cost.
    """
    counts = ", ".join(f"{name} {summary[name]}" for name in ("rows", *COUNTS))
    reconciled = summary["reconciled"]
    told = f"; the balance told what became of {counted(reconciled, 'message')}" if reconciled else ""
    requests = f"{summary['requests']} {by_count(summary['requests'], 'request')}"
    parts = f"{summary['parts']} {by_count(summary['parts'], 'part')}"
    cost = at_least(str(summary["cost"]), of_unknown_cost)
    return f"Campaign {summary['campaign']}: {counts}; {requests}, {parts}, cost {cost}{told}"


@own_decimals()
def replay(ledger: CampaignLedger, counts: SendCounts) -> None:
    """Count the requests of this attempt's earlier legs as if this leg had made them.

    Their responses are read one by one: the ledger's columns have no costs by network, no error report and no balance,
    and a cost is added exactly, as the decimal that the service wrote.

    :param counts: of this leg.
    :raises LedgerError: when the ledger cannot be read.
    """
    balance, balance_at = counts.remaining_balance, 0.0
    for request in ledger.requests_of_earlier_legs():
        if request.state == ACCEPTED:
            response = _parsed(request.response)
            # The balance may have told the cost of a request without a response.
            cost = None if request.cost is None else Decimal(request.cost)
            counts.replay(request.submitted, response, parts=request.parts, cost=cost)
            # Requests are read in the order of their claims, but the responses may have come in another.
            if response is not None and (request.finished_at or 0.0) >= balance_at:
                balance, balance_at = response.remaining_balance, request.finished_at or 0.0
        else:
            counts.replay_lost(request.request_id, request.submitted)
    counts.remaining_balance = balance


def _parsed(body: str | None) -> SendResponse | None:
    if body is None:
        return None
    try:
        return parse_send_response(body.encode())
    except SmsError:
        return None
