"""The table of ``[sms]`` options in ``docs/configuration.md``: ``python -m support.configuration`` writes it."""

from __future__ import annotations

import re
import sys

from airflow_provider_sms.get_provider_info import get_provider_info
from support.pages import ROOT

PAGE = ROOT / "docs" / "configuration.md"
HEADER = ("Option", "Type", "Default", "Example", "Meaning", "More")
_TABLE = re.compile(r"^\| Option \|.*\n(?:\|.*\n)+", re.MULTILINE)

MORE = {
    "ledger_conn_id": "[PostgreSQL](deploy.md#the-database)",
    "allow_local_ledger": "[several machines](deploy.md)",
    "ledger_path": "[the ledger](ledger.md)",
    "require_synchronous_standby": "[high availability](deploy.md#high-availability)",
    "ledger_patience": "[a silent server](deploy.md#a-silent-server)",
    "retention_days": "[PurgeLedgerOperator](operators.md#purgeledgeroperator)",
}
"""The page that explains each option."""


def options():
    """Return the options of ``[sms]``, as Airflow is told of them."""
    return get_provider_info()["config"]["sms"]["options"]


def table():
    """Return the table of all options, in the order of the provider's metadata."""
    rows = [HEADER, ("---",) * len(HEADER)]
    for name, option in options().items():
        default = f"`{option['default']}`" if option["default"] else "empty"
        meaning = option["description"].replace("``", "`")
        rows.append((f"`{name}`", option["type"], default, f"`{option['example']}`", meaning, MORE[name]))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_table(text):
    """Return the text of a page with the table of now in place of its own."""
    written, count = _TABLE.subn(lambda _: table(), text)
    if count != 1:
        raise ValueError(f"the page has {count} tables of options, and not one")
    return written


def main():
    """Write the table into the page; the exit status is 0."""
    PAGE.write_text(with_table(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
