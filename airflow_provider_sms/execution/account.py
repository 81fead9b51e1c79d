"""The account of an attempt: how its claims name it, and what its balance tells of the requests of earlier attempts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import ServiceError
from airflow_provider_sms.ledger.account import Account
from airflow_provider_sms.ledger.request_queries import unknown_requests
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.sending.settle import Reconciliation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.service.responses import Balance

log = logging.getLogger(__name__)


def account_of(settings: ClientSettings, cost_per_part: float | Mapping[str, float] = 1) -> Account:
    """Return the account of a connection, with the expected prices.

    :param cost_per_part: credits for an SMS part: one number, or numbers by the first digits of the destination.
    :raises InputError: a price is not usable.
    """
    return Account(settings.account, Prices(cost_per_part).of_request)


def reconciliation_of(session: LedgerSession, settings: ClientSettings, campaign: str) -> Reconciliation:
    """Return the reconciliation that reads the account's balance for an attempt.

    :param campaign: the campaign's name, as the ledger has it.
    """

    def read_balance() -> Balance:
        try:
            with settings.client() as client:
                return client.get_balance()
        except ServiceError as error:
            error.place = settings.place(settings.balance_url)
            raise

    return Reconciliation(session.store, campaign, settings.account, read_balance)


def close_earlier(session: LedgerSession, ledger: CampaignLedger, reconciliation: Reconciliation) -> None:
    """Close the requests that earlier attempts left unknown, as far as the balance tells what became of them.

    :raises LedgerError: when the ledger cannot be read, or does not take an outcome.
    """
    ledger.lapse()
    unknown = [row.request_id for row in unknown_requests(session.store, ledger.campaign_name)]
    if not unknown:
        return
    try:
        reconciliation.close(unknown)
    except ServiceError as error:
        log.info("The balance cannot be read, so what earlier attempts left unknown stays so for now: %s", error)
