"""The service's raw answers, as XComs hold them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.campaign import CampaignLedger


def responses_of(ledger: CampaignLedger, limit: int) -> list[Any] | dict[str, Any]:
    """Give the raw answers to this task's requests, of all its tries; above the limit only how many there are."""
    count = ledger.responses.count()
    if count > limit:
        return {"truncated": True, "requests": count}
    return [for_xcom(body) for body in ledger.responses.first(limit)]


def for_xcom(body: str) -> Any:
    """Give an answer as an XCom can hold it: half an emoji, which no database takes, becomes a question mark."""
    whole = json.dumps(json.loads(body), ensure_ascii=False).encode("utf-8", "replace")
    return json.loads(whole)
