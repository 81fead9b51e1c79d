"""All sections of the fault suite, with one table of results: ``python -m support.faults``."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
import traceback
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.table import Table

from support.faults import airflow, failover, network, sigkills, steps
from support.faults.tries import STORES, new_ledger
from support.faults.verdict import Figures

PARTS = {
    "steps": steps.run,
    "network": network.run,
    "sigkills": sigkills.run,
    "failover": failover.run,
    "airflow": lambda ledgers, quick: airflow.run(ledgers.name, quick),
}
"""Sections by name; each takes a function that opens a ledger, and whether the run is quick."""

RECONCILING = ("steps", "network")
"""Parts of which some cases are run again, with lost requests closed by what the balance proves."""

PARTS |= {f"{name}-reconcile": partial(PARTS[name], reconciles=True) for name in RECONCILING}

OF_ONE_STORE = {"failover": "postgresql"}
"""Parts that are of one kind of store, and left out with the other."""

COLUMNS = ("cases", "duplicates", "lost", "wrongly accepted", "wrongly not sent", "unknown", "reconciled", "seconds")


def main(arguments=None):
    """Run sections on kinds of ledgers, print the table, and return 1 if the promise was broken, else 0."""
    parser = argparse.ArgumentParser(prog="python -m support.faults", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only a representative part of the cases")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    asked = parser.parse_args(arguments)
    table = Table("part", "store", *COLUMNS, title="What was broken on purpose, and what came of it")
    total, without_end = Figures(), 0
    for store in asked.stores:
        for part in asked.only:
            if OF_ONE_STORE.get(part, store) != store:
                continue
            began = time.monotonic()
            try:
                with new_ledger(store) as ledgers, quiet():
                    figures = PARTS[part](ledgers, asked.quick)
            except Exception:  # noqa: BLE001  # the other sections still run
                without_end += 1
                traceback.print_exc()
                table.add_row(part, store, "did not end")
                continue
            sys.stderr.write(f"{part} on {store}: {figures}\n")
            total += figures
            table.add_row(part, store, *_cells(figures), f"{time.monotonic() - began:.0f}")
    table.add_section()
    table.add_row("all", "", *_cells(total), "")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    return int(total.broken + without_end > 0)


@contextmanager
def quiet():
    """Log nothing about faults that are intended; a broken promise is printed all the same."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _cells(figures):
    return [f"{getattr(figures, name.replace(' ', '_')):,}" for name in COLUMNS[:-1]]


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the servers that it started end with it
    sys.exit(main())
