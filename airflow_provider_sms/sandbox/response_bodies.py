"""Bodies of successful responses, in the configured key case and wrapping."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.config import KeyCase, SandboxConfig
    from airflow_provider_sms.sandbox.message_filter import FilteredMessages
    from airflow_provider_sms.sandbox.records import SendResult

CAMEL_EXCEPTIONS = {"CostBreakDown": "costBreakdown"}
"""Keys whose camelCase spelling, as clients of the service report it, follows no rule."""


def send_body(result: SendResult, config: SandboxConfig) -> dict[str, Any]:
    """Return the body of a send response.

    :param result: the result to report.
    :param config: the key case and the wrapping.
    """
    messages = result.messages
    body = {
        "Cost": json_number(messages.cost),
        "RemainingBalance": json_number(result.remaining_balance),
        "EventId": result.event_id,
        "Sample": messages.sendable[0].content if messages.sendable else "",
        "Messages": len(messages.sendable),
        "Parts": sum(message.parts for message in messages.sendable),
        "CostBreakDown": _breakdown(messages),
        "ErrorReport": {
            "NoNetwork": messages.no_network,
            "Duplicates": messages.duplicates,
            "OptedOuts": messages.opted_outs,
            "Faults": [],
        },
    }
    cased: dict[str, Any] = _cased(body, config.key_case)
    return {"statusCode": 200, "sendResponse": cased, "errors": []} if config.wrapped else cased


def balance_body(balance: Decimal, config: SandboxConfig) -> dict[str, Any]:
    """Return the body of a ``Balance`` response.

    :param balance: credits.
    :param config: the key case.
    """
    cased: dict[str, Any] = _cased({"Balance": json_number(balance)}, config.key_case)
    return cased


def json_number(amount: Decimal) -> int | float:
    """Return an amount as a JSON number: an integer if it is a whole number of at most 64 bits, which is all that fits.

    :param amount: credits.
    """
    return int(amount) if amount == int(amount) and abs(amount) < 2**63 else float(amount)


def _breakdown(messages: FilteredMessages) -> list[dict[str, Any]]:
    costs: defaultdict[str, Decimal] = defaultdict(Decimal)
    quantities: defaultdict[str, int] = defaultdict(int)
    for message in messages.sendable:
        costs[message.network.name] += message.cost
        quantities[message.network.name] += 1
    return [{"Network": name, "Cost": json_number(costs[name]), "Quantity": quantities[name]} for name in costs]


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
