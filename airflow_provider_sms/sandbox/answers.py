"""Bodies of successful answers, in the key case and wrapping that the sandbox is set to."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.config import KeyCase, SandboxConfig
    from airflow_provider_sms.sandbox.records import Receipt
    from airflow_provider_sms.sandbox.screening import Screened

CAMEL_EXCEPTIONS = {"CostBreakDown": "costBreakdown"}  # so the service's clients report it


def send_body(receipt: Receipt, config: SandboxConfig) -> dict[str, Any]:
    """Give the send response.

    :param receipt: what it reports.
    :param config: gives key case and wrapping.
    """
    screened = receipt.screened
    body = {
        "Cost": number(screened.cost),
        "RemainingBalance": number(receipt.remaining_balance),
        "EventId": receipt.event_id,
        "Sample": screened.priced[0].content if screened.priced else "",
        "Messages": len(screened.priced),
        "Parts": sum(message.parts for message in screened.priced),
        "CostBreakDown": _breakdown(screened),
        "ErrorReport": {
            "NoNetwork": screened.no_network,
            "Duplicates": screened.duplicates,
            "OptedOuts": screened.opted_outs,
            "Faults": [],
        },
    }
    shaped: dict[str, Any] = _cased(body, config.key_case)
    return {"statusCode": 200, "sendResponse": shaped, "errors": []} if config.wrapped else shaped


def balance_body(balance: Decimal, config: SandboxConfig) -> dict[str, Any]:
    """Give the answer to ``Balance``.

    :param balance: credit.
    :param config: gives the key case.
    """
    shaped: dict[str, Any] = _cased({"Balance": number(balance)}, config.key_case)
    return shaped


def number(amount: Decimal) -> int | float:
    """Give an amount as a JSON number.

    :param amount: credits.
    """
    return int(amount) if amount == int(amount) else float(amount)


def _breakdown(screened: Screened) -> list[dict[str, Any]]:
    costs: defaultdict[str, Decimal] = defaultdict(Decimal)
    quantities: defaultdict[str, int] = defaultdict(int)
    for message in screened.priced:
        costs[message.network.name] += message.cost
        quantities[message.network.name] += 1
    return [{"Network": name, "Cost": number(costs[name]), "Quantity": quantities[name]} for name in costs]


def _cased(value: Any, key_case: KeyCase) -> Any:
    if key_case == "pascal":
        return value
    if isinstance(value, dict):
        return {_camel(key): _cased(item, key_case) for key, item in value.items()}
    if isinstance(value, list):
        return [_cased(item, key_case) for item in value]
    return value


def _camel(key: str) -> str:
    return CAMEL_EXCEPTIONS.get(key, key[0].lower() + key[1:])
