"""The command that creates or upgrades the tables of a ledger on a server, for a role that owns them: migrate.

Tasks create and upgrade the tables themselves where their role may. Where it may not, the owner does it with this
command. Airflow's audit log has the change before it is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sms.cli.audit import audited_command
from airflow_provider_sms.cli.console import command, confirm, print_message
from airflow_provider_sms.hooks.ledger import ledger_server, open_ledger_server

if TYPE_CHECKING:
    from argparse import Namespace


@command
def migrate(args: Namespace) -> None:
    """Create the tables of a ledger in PostgreSQL, or upgrade those of an older version."""
    from airflow_provider_sms.ledger.open import check_version, stored_version
    from airflow_provider_sms.ledger.postgres_engine import describe
    from airflow_provider_sms.ledger.schema import SCHEMA_VERSION

    url = ledger_server(args.ledger_conn_id)
    described, version = describe(url), stored_version(url)
    if version == SCHEMA_VERSION:
        print_message(f"{described} holds a ledger of version {version}, which is this package's: nothing to do")
        return
    if version is None:
        print_message(f"{described} holds no ledger. This creates its tables, of version {SCHEMA_VERSION}.")
        confirm("Create the tables?", yes=args.yes)
    else:
        check_version(version)
        print_message(
            f"{described} holds a ledger of version {version}. This upgrades it to version {SCHEMA_VERSION}.",
            "Tasks with an older airflow-provider-sms that start afterwards refuse the ledger, and send nothing. Those "
            "that are sending go on.",
        )
        confirm("Upgrade the ledger?", yes=args.yes)
    with audited_command("sms.migrate", from_version=version, to_version=SCHEMA_VERSION) as act:
        act.begin()
        open_ledger_server(url).close()
    print_message(f"{described} holds a ledger of version {SCHEMA_VERSION}. Grant the rights on new tables now")
