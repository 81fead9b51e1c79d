"""Made-up traffic of a morning: always the same texts to the same unassigned numbers."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import requests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sms.sandbox.server import SandboxHandle

SEED = 20_261_122
NAMES = ("Thandi", "Sipho", "Anna", "Pieter", "Lerato", "Zoë", "Zanele", "Kagiso", "Naledi", "Ruan")
SOMEBODY = "27820000005"

Message = tuple[str, str]


def send(sandbox: SandboxHandle, token: str) -> None:
    """Send the traffic, with some faults.

    :param sandbox: the receiving sandbox.
    :param token: the sandbox's bearer token.
    """
    chance = random.Random(SEED)
    caller = _Caller(sandbox, token)
    faults = sandbox.state.set_faults
    caller.balance()
    caller.bulk([(_number(n), f"Welcome, {chance.choice(NAMES)}. Reply STOP to opt out.") for n in range(40)])
    caller.bulk([(SOMEBODY, "Your order 4711 was received. We let you know as soon as it leaves our warehouse.")])
    caller.group("Stocktaking starts at 18:00 in hall 2.", "staff")
    faults([{"kind": "status", "status": 503, "retry_after": "1"}])
    reminders = [(_number(n), _reminder(chance)) for n in range(3, 28)]
    caller.bulk(reminders)
    caller.bulk(reminders)
    caller.bulk([(SOMEBODY, "Zoë, your order 4711 left our warehouse. Track it at https://example.com/t/4711")])
    faults([{"kind": "drop_after"}])
    caller.bulk([(_number(n), f"Your code is {chance.randrange(10**6):06}.") for n in range(4, 7)])
    faults([{"kind": "truncated", "on": "balance"}])
    caller.balance()
    caller.balance()
    caller.bulk([(f"4477009001{n:02}", "Our office in London moves on Monday.") for n in range(9)])
    caller.bulk([(SOMEBODY, _long_text())])
    faults([{"kind": "status", "status": 429, "retry_after": "2", "times": 3}, {"kind": "delay", "seconds": 8}])


class _Caller:
    def __init__(self, sandbox: SandboxHandle, token: str) -> None:
        self._base = sandbox.base_url
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json", "Connection": "close"}

    def bulk(self, messages: Sequence[Message]) -> None:
        body = [{"Destination": number, "Content": text} for number, text in messages]
        self._call("POST", "bulkmessages", {"Messages": body})

    def group(self, text: str, *groups: str) -> None:
        self._call("POST", "groupmessages", {"Message": text, "Groups": groups})

    def balance(self) -> None:
        self._call("GET", "Balance", None)

    def _call(self, method: str, path: str, body: dict[str, Any] | None) -> None:
        try:
            requests.request(method, f"{self._base}/{path}", json=body, headers=self._headers, timeout=10)
        except requests.RequestException:
            return  # a requested fault


def _number(place: int) -> str:
    return f"{('2782', '2760', '2771')[place % 3]}{place:07}" if place != int(SOMEBODY[-1]) else SOMEBODY


def _reminder(chance: random.Random) -> str:
    """Return a text of the README's campaign."""
    invoice, cents = chance.randrange(1000, 2000), chance.randrange(9_900, 99_900)
    return (
        f"Hi {chance.choice(NAMES)}, invoice INV-{invoice} of R{cents / 100:.2f} is overdue. Paid already? Thank you."
    )


def _long_text() -> str:
    return (
        "Your order 4711 arrives today between 14:00 and 16:00. Please have your identity document at hand. Nobody "
        "home? The driver leaves it with a neighbour and texts you where, or brings it again tomorrow at the same time."
    )
