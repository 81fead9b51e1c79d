"""The ledger that a command works on, and a hint if it has no campaign of the name that was typed.

Apart from the commands, because commands that read, write and resolve all open a ledger this way.
"""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from airflow_provider_sms.cli.console import did_you_mean
from airflow_provider_sms.exceptions import InputError, NoCampaignError
from airflow_provider_sms.hooks.ledger import open_existing_ledger

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from airflow_provider_sms.ledger.backend import LedgerBackend


@contextmanager
def existing_ledger(args: Namespace) -> Iterator[LedgerBackend]:
    """Open the ledger of ``--ledger-conn-id`` or of the configuration; never create one.

    The campaign in the arguments becomes the name that a task which is given the same one would use.

    :raises InputError: there is no ledger; or it has no such campaign, and the error suggests the name that was
        probably meant.
    :raises LedgerError: it cannot be opened.
    """
    from airflow_provider_sms.ledger.campaign_names import latest_names
    from airflow_provider_sms.ledger.name_rules import read_name

    with closing(open_existing_ledger(args.ledger_conn_id)) as store:
        if getattr(args, "campaign", None) is not None:
            with suppress(InputError):  # no campaign has a name that is refused, as is said then
                args.campaign = read_name(args.campaign)
        try:
            yield store
        except NoCampaignError as error:
            meant = did_you_mean(error.name, {name: repr(name) for name in latest_names(store)})
            raise InputError(f"{error}{meant}") from None
