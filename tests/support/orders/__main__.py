"""Plays every order of the cases, draws orders of larger ones, or looks which defects the cases find.

It exits with 1 where a promise was broken, a defect was not found, or what happens rarely never happened.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from support.faults.mutants import copied
from support.faults.mutations import MUTATIONS
from support.faults.tries import STORES
from support.orders.cases import DEFECTS, LARGE, LARGER, SMALL
from support.orders.drawn import SOMETIMES, draw_orders
from support.orders.explore import explore
from support.orders.ledgers import opened

CASES = {**SMALL, **LARGE}


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m support.orders", description=__doc__)
    parser.add_argument("--small", action="store_true", help="only the cases that are played with every change")
    parser.add_argument("--drawn", type=int, metavar="N", help="draw N orders on each store: a thousand or more")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="of what is drawn, to draw it again")
    parser.add_argument("--until-broken", action="store_true", help="end with the first case that is broken")
    parser.add_argument("--defects", action="store_true", help="apply one defect after the other to a copy")
    parser.add_argument("--only", default="", help="a part of the names of cases or defects")
    given = parser.parse_args()
    if given.defects:
        return _defects(given.only)
    if given.drawn is not None:
        return parser.error("what is drawn has no name") if given.only else _draw(given.drawn, given.seed)
    chosen = {name: case for name, case in (SMALL if given.small else CASES).items() if given.only in name}
    if not chosen:
        parser.error("no case has these words")
    return _explore(chosen, until_broken=given.until_broken)


def _explore(cases, *, until_broken):
    is_broken, orders, states = False, 0, 0
    with opened("sqlite") as ledger:
        for name, case in cases.items():
            if not (is_broken and until_broken):
                began = time.monotonic()
                found = explore(case, ledger)
                is_broken |= bool(found.broken)
                orders, states = orders + found.orders, states + found.states
                _say(f"{name}: {found.orders} orders, {found.states} states, {time.monotonic() - began:.0f} s")
                for wrong, steps in found.broken[:1]:
                    _say("\n".join((f"BROKEN: {'; '.join(wrong)} ({name})", *(f"    {step}" for step in steps))))
    _say(f"all: {orders} orders, {states} states")
    return int(is_broken)


def _draw(count, seed):
    _say(f"--seed {seed}")
    never = set(SOMETIMES)
    for store in STORES:
        with opened(store) as ledger:
            began = time.monotonic()
            try:
                rare = draw_orders(ledger, count, seed)
            except AssertionError as error:
                _say("\n".join((f"drawn on {store}", f"BROKEN: {error}", *getattr(error, "__notes__", ()))))
                return 1
            never -= set(rare)
            _say(f"{count} orders on {store}, none of them wrong, {time.monotonic() - began:.0f} s")
            for each, how_often in rare.most_common():
                _say(f"{how_often:>7} {each}")
    for each in sorted(never):
        _say(f"NEVER: {each}")
    return int(bool(never))


def _defects(only):
    named = {*DEFECTS, *LARGER}
    chosen = [each for each in MUTATIONS if each.name in named and only in each.name]
    assert named <= {each.name for each in MUTATIONS}
    missed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutation, words in zip(chosen, pool.map(_hunt, chosen), strict=True):
            missed += words is None
            _say(f"{mutation.name}: {words or 'NOT FOUND'}")
    _say(f"{len(chosen)} defects, {missed} not found")
    return int(missed > 0 or not chosen)


def _hunt(mutation):
    """Return which case finds a defect, and how; None where none does."""
    options = ["--small"] if mutation.name in DEFECTS else ["--only", LARGER[mutation.name]]
    command = [sys.executable, "-m", "support.orders", *options, "--until-broken"]
    with copied(mutation) as (folder, environment):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if broken := [n for n, line in enumerate(lines) if line.startswith("BROKEN")]:
        return "\n".join(lines[broken[0] :])
    told = done.stderr.strip().splitlines()[-1:]
    return told[0] if told and "a run has no end" in told[0] else None


def _say(line):
    print(line, flush=True)  # noqa: T201  # a command


if __name__ == "__main__":
    sys.exit(main())
