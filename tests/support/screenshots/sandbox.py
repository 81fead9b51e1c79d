"""A screenshot of the sandbox's page: always the same texts to the same unassigned numbers."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import requests

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.screenshots.shots import Shot

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "made-up-token"
SEED = 20_261_122
NAMES = ("Thandi", "Sipho", "Anna", "Pieter", "Lerato", "Zoë", "Zanele", "Kagiso", "Naledi", "Ruan")
ORDER = (
    "Your order 4711 arrives today between 14:00 and 16:00. Please have your identity document at hand. Nobody "
    "home? The driver leaves it with a neighbour and texts you where, or brings it again tomorrow at the same time."
)
FAULTS: list[dict[str, Any]] = [
    {"kind": "drop_after"},
    {"kind": "status", "status": 429, "retry_after": "2", "times": 3},
]


@contextmanager
def shots() -> Iterator[list[Shot]]:
    """Run a sandbox with some traffic, and yield the shot of its page."""
    chance = random.Random(SEED)
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json", "Connection": "close"}
    with running_sandbox(SandboxConfig(token=TOKEN, balance=5000)) as sandbox:
        for texts in ([reminder(chance) for _ in range(12)], [ORDER], ["Zoë, thank you."]):
            body = [{"Destination": f"2782{place:07}", "Content": text} for place, text in enumerate(texts, 1)]
            requests.post(f"{sandbox.base_url}/bulkmessages", json={"Messages": body}, headers=headers, timeout=10)
        sandbox.state.set_faults(FAULTS)
        yield [Shot("sandbox", sandbox.base_url.removesuffix("v1"), height=600, schemes=("light",), prepare=_wait)]


def reminder(chance: random.Random) -> str:
    """Return a text of the README's campaign."""
    invoice, cents = chance.randrange(1000, 2000), chance.randrange(9_900, 99_900)
    return (
        f"Hi {chance.choice(NAMES)}, invoice INV-{invoice} of R{cents / 100:.2f} is overdue. Paid already? Thank you."
    )


def _wait(page: Any) -> None:
    page.locator("#messages > tr").nth(13).wait_for()
    page.locator("#waiting > li").nth(1).wait_for()
