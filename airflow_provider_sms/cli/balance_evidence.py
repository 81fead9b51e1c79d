"""The balances of accounts, read for a command, and what they tell of unknown requests."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from airflow_provider_sms.cli.console import print_message
from airflow_provider_sms.exceptions import InputError, ServiceError
from airflow_provider_sms.formatting import by_count, join_some, money
from airflow_provider_sms.hooks.connection import client_settings, stored_connection
from airflow_provider_sms.ledger.balances import note_evidence, record_reading
from airflow_provider_sms.sending.settle import weigh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.requests import RequestRow


def read_balances(store: LedgerBackend, rows: Sequence[RequestRow]) -> None:
    """Read the balance of each account that unknown requests were sent with, and note what it tells of them.

    If a balance cannot be read, this says so and goes on with the next. It closes no request.

    :param rows: the requests, at least one.
    :raises LedgerError: when the ledger cannot be read or written.
    """
    by_account: dict[str | None, list[RequestRow]] = defaultdict(list)
    for row in rows:
        by_account[row.account].append(row)
    for its in by_account.values():
        try:
            _read_balance(store, its)
        except (InputError, ServiceError) as error:
            ids = join_some([str(row.request_id) for row in its])
            print_message(f"No balance was read for {by_count(len(its), 'request')} {ids}: {error}")


def _read_balance(store: LedgerBackend, rows: Sequence[RequestRow]) -> None:
    """Read the balance of one account, record it, and note what it tells of its unknown requests.

    :raises InputError: the connection of the newest request leads to the account no more.
    :raises ServiceError: there is no usable response.
    """
    account, conn_id = rows[-1].account, rows[-1].conn_id
    connection = None if conn_id is None else stored_connection(conn_id)
    if account is None or connection is None:
        raise InputError(f"Airflow has no connection {conn_id!r}, or the ledger does not know the account")
    settings = client_settings(connection, connection.extra_dejson)
    if settings.account != account:
        raise InputError(f"connection {conn_id!r} leads to another account now, by its address, login or token")
    asked_at = store.clock()
    balance = settings.read_balance()
    amount = None if balance.post_paid else balance.amount
    record_reading(store, account, amount, asked_at)
    read_at = store.clock()
    evidence = weigh(store, account, [row.request_id for row in rows], print_message)
    by_campaign: dict[str, dict[int, KeptEvidence]] = defaultdict(dict)
    for row in rows:
        if (found := evidence.get(row.request_id)) is not None:
            by_campaign[row.campaign][row.request_id] = found.kept(read_at)
    for campaign, kept in by_campaign.items():
        note_evidence(store, campaign, kept)
    said = "post-paid: its balance tells nothing" if amount is None else f"{money(amount)} credits"
    print_message(f"The account of connection {conn_id}: {said}")
