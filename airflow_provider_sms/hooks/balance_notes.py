"""What a sensor sees of an account's balance, for the ledger; a sensor never depends on it."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_sms.exceptions import InputError, SmsError
from airflow_provider_sms.hooks.ledger import open_existing_ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

log = logging.getLogger(__name__)


class BalanceNotes:
    """Records the balances of one account in the default ledger, where there is one. It never raises, and makes none.

    The ledger is opened for each balance, and not at all for one that is as it was. The first failure is logged, and
    nothing more is recorded.

    :param conn_id: the connection whose account it is.
    :param clock: seconds, from any start.
    """

    def __init__(self, conn_id: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._conn_id = conn_id
        self._clock = clock
        self._broken = False
        self._last: tuple[Decimal | None, float] | None = None

    def record(self, amount: Decimal | None) -> None:
        """Record a balance that was just seen.

        :param amount: credits; None: the account is post-paid.
        """
        if self._broken or self._is_known(amount):
            return
        try:
            self._record(amount)
        except InputError as error:
            # There is none, or none that this could be.
            log.debug("The balance is not recorded: %s", error)
        except Exception as error:  # noqa: BLE001  # whatever a ledger raises, the sensor goes on
            self._broken = True
            words = str(error) if isinstance(error, SmsError) else type(error).__name__
            log.warning("Balances are not recorded in the ledger: %s", words)

    def _is_known(self, amount: Decimal | None) -> bool:
        from airflow_provider_sms.sending.balances import FRESH_SECONDS

        if self._last is None:
            return False
        last, at = self._last
        return last == amount and self._clock() - at <= FRESH_SECONDS

    def _record(self, amount: Decimal | None) -> None:
        from airflow_provider_sms.sending.balances import record_balance

        with closing(open_existing_ledger(None, connection=BaseHook.get_connection)) as store:
            record_balance(store, self._conn_id, amount)
        self._last = (amount, self._clock())
