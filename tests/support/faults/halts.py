"""What ends a part of a try early with nothing wrong: the hours are over, or the credit is used up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING

from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.send_window.window import SendWindow
from airflow_provider_sms.sending.stop_conditions import Credit, StopConditions

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.state import SandboxState

RICH = 10**9
"""A balance that nothing here uses up."""

_HOURS = SendWindow(start="08:00", end="20:00", timezone="UTC")
_NOON = datetime(2026, 11, 23, 12, tzinfo=timezone.utc).timestamp()
_NIGHT = datetime(2026, 11, 23, 22, tzinfo=timezone.utc).timestamp()


@dataclass(frozen=True, slots=True)
class Halts:
    """Where a part halts.

    :param requests: after so many looks at the hours; None: it does not look.
    :param balance: what the account has when the part begins; None: more than enough, and nobody looks at it.
    :param foreseen: whether the part knows what messages cost; else the service refuses the request that is too much.
    """

    requests: int | None = None
    balance: int | None = None
    foreseen: bool = True

    def stop_conditions(self, people: int) -> StopConditions:
        """Give the stop_conditions of a part.

        :param people: of the table.
        """
        looks = iter(range(self.requests or 0))
        credit = None
        if self.balance is not None:
            price = 1 if self.foreseen else 0.01
            credit = Credit(Prices(price), Decimal(people), Decimal(self.balance))
        return StopConditions(
            None if self.requests is None else _HOURS,
            credit,
            clock=lambda: _NIGHT if next(looks, None) is None else _NOON,
        )

    def begin(self, service: SandboxState) -> None:
        """Give the account what it has when the part begins: a part goes on when there is credit again."""
        service.set_balance(RICH if self.balance is None else self.balance)


NEVER = Halts()
