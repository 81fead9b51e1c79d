"""Reasons for which a leg ends early without an error: a closed send window, or exhausted credit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING

from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.send_window.window import SendWindow
from airflow_provider_sms.sending.stop_conditions import StopConditions

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.state import SandboxState

RICH = 10**9
"""A balance that no schedule exhausts."""

_HOURS = SendWindow(start="08:00", end="20:00", timezone="UTC")
_NOON = datetime(2026, 11, 23, 12, tzinfo=timezone.utc).timestamp()
_NIGHT = datetime(2026, 11, 23, 22, tzinfo=timezone.utc).timestamp()


@dataclass(frozen=True, slots=True)
class Halts:
    """The point at which a leg ends early.

    :param requests: requests before the send window closes, if one is posted at a time; None means no send window.
    :param balance: balance at the start of the leg; None means more than enough, and no checks.
    """

    requests: int | None = None
    balance: int | None = None

    def stop_conditions(self, people: int) -> StopConditions:
        """Return the stop conditions of a leg.

        :param people: people in the table.
        """
        looks = iter(range(2 * (self.requests or 0)))  # before its claim, and before its POST
        return StopConditions(
            None if self.requests is None else _HOURS,
            None if self.balance is None else Prices(1),
            None if self.balance is None else Decimal(self.balance),
            clock=lambda: _NIGHT if next(looks, None) is None else _NOON,
        )

    def begin(self, service: SandboxState) -> None:
        """Set the balance at the start of a leg, since a leg resumes once there is credit again."""
        service.set_balance(RICH if self.balance is None else self.balance)


NEVER = Halts()
