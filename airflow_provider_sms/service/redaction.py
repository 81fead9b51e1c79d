"""Redaction of the service's responses: what of a response the ledger keeps and XComs show.

A response repeats the text of one person's message, and names the numbers that it found fault with. Anyone who may read
XComs can read it, and the ledger keeps it as long as the campaign. So both hold the fields of the contract alone, and
of the service's words only what names nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sms.service.echoes import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from airflow_provider_sms.service.responses import ErrorReport, SendResponse

MAX_ENTRIES = 100
"""Networks, further counters and faults that are kept: a request has as many messages."""

_MAX_NAME = 30
_MAX_FAULT = 100
"""Characters of a name and of a fault's words that are kept."""


def reported(report: ErrorReport, texts: Iterable[str] = ()) -> dict[str, int]:
    """Return an error report as counts only, since its faults hold numbers; further names are the service's words."""
    counts = {
        "NoNetwork": report.no_network,
        "Duplicates": report.duplicates,
        "OptedOuts": report.opted_outs,
        "Faults": len(report.faults),
    }
    clean = harmless(texts, _MAX_NAME)
    for written, count in list(report.other.items())[:MAX_ENTRIES]:
        name = clean(written)
        # A name that is cut or masked may be that of another counter.
        counts[name] = counts.get(name, 0) + count
    return counts


def redacted_response(response: SendResponse, texts: Iterable[str]) -> dict[str, Any]:
    """Return a response by the service's names of its fields, as JSON can express it, without ``Sample``.

    Of a fault, its words stay. The event id is a text, since readers in JavaScript round integers of 64 bits.

    :param texts: the texts that were posted, which no words may repeat.
    """
    texts = list(texts)
    words, name = harmless(texts, _MAX_FAULT), harmless(texts, _MAX_NAME)
    return {
        "Cost": _number(response.cost),
        "RemainingBalance": _number(response.remaining_balance),
        "EventId": str(response.event_id),
        "Messages": response.messages,
        "Parts": response.parts,
        "CostBreakDown": [
            {"Network": name(each.network), "Cost": _number(each.cost), "Quantity": each.quantity}
            for each in response.cost_breakdown[:MAX_ENTRIES]
        ],
        "ErrorReport": {
            **reported(response.error_report, texts),
            "Faults": [{"errorMessage": words(fault)} for fault in response.error_report.faults[:MAX_ENTRIES]],
        },
    }


def _number(amount: Decimal) -> int | float:
    return int(amount) if amount == int(amount) else float(amount)
