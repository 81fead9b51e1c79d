"""The same people in another table: a campaign is sent again in another form, and nobody is texted again.

A table comes back: other rows stand beside a row, its column has another type, its files are split elsewhere, it is CSV
where it was Parquet. Each case sends a campaign in one form, then with more people in another. The witness says who was
texted. What is refused is nobody's loss, since it is said.
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.messages.outgoing import Outgoing
from airflow_provider_sms.messages.prepare import Preparation
from airflow_provider_sms.recipients.sources import open_source
from support.faults.sendings import Sending
from support.faults.stage import play_all
from support.faults.verdict import Figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from support.faults.stage import Stage

FIRST_NUMBER = 27_830_000_000
"""Of people whom no other part has, and none of whom wants no messages."""
PEOPLE = 12
QUICK = 1
"""Times that each case is played, each time in other forms."""
FULL = 40

IN_MEMORY = ("dicts", "objects", "frame", "table")
IN_FILES = ("parquet", "csv")
ANY = (*IN_MEMORY, *IN_FILES)
DAY = dt.datetime(2026, 3, 1)  # noqa: DTZ001 - a time without a zone is meant


class Case(NamedTuple):
    """Values of a column of two tables, and what the message does with them.

    :param given: of the first people.
    :param then: of the first people in the second table, one for one; None: the same again.
    :param beside: of more people in the second table.
    :param refused: whether a table with the column is refused, the first one too.
    :param left_out: whether the more people cannot be texted.
    """

    name: str
    given: tuple[Any, ...]
    message: str = "Hi, {x}"
    keys: list[str] | None = None
    then: tuple[Any, ...] | None = None
    beside: tuple[Any, ...] = ()
    forms: tuple[str, ...] = ANY
    refused: bool = False
    left_out: bool = False


CENTS = (10.0, 12.5, 1250.75, 0.1, 2.675, 1e-5, 0.0)
DECIMALS = (Decimal(10), Decimal("99.00"))
MONEY = "R{x:,.2f}"
CASES = (
    Case("decimals, then cents", DECIMALS, beside=(Decimal("12.50"),), forms=("dicts", "objects"), refused=True),
    Case("decimals in a format", DECIMALS, MONEY, beside=(Decimal("12.50"), Decimal("0.125"))),
    Case("decimals as keys", DECIMALS, "Hi", ["x"], beside=(Decimal("12.50"), Decimal("0.125"))),
    Case("decimals, then floats", DECIMALS, MONEY, then=(10.0, 99.0), beside=(0.5,)),
    Case("whole floats", (10.0, 20.0), beside=(12.5,), forms=(*IN_MEMORY, "parquet")),
    Case("whole floats, then a word", (10.0, 20.0), beside=("soon",), forms=("dicts", "objects")),
    Case("whole floats as keys, then a word", (10.0, 20.0), "Hi", ["x"], beside=("soon",), forms=("dicts", "objects")),
    Case("integers, then nothing", (10, 20), beside=(None,), forms=(*IN_MEMORY, "parquet"), left_out=True),
    Case("integers, then floats", (10, 20), then=(10.0, 20.0), forms=(*IN_MEMORY, "parquet")),
    Case("integers as keys, then text", (10, 20), "Hi", ["x"], then=("10.0", "20.00")),
    Case("cents", CENTS, MONEY, beside=(999.995,)),
    Case("cents as keys", CENTS, "Hi", ["x"], beside=(999.995,)),
    Case("short floats", (np.float32(0.1), np.float32(12.7)), then=(0.1, 12.7), forms=(*IN_MEMORY, "parquet")),
    Case("short floats as keys", (np.float32(0.1),), "Hi", ["x"], then=(0.1,), beside=(1.5,)),
    Case("truths, then a number", (True, False), beside=(0.5,), forms=("dicts", "objects")),
    Case("dates, then a time", (DAY.date(),), beside=(DAY.replace(hour=9),), forms=("dicts", "objects")),
    Case("dates, then midnights", (DAY.date(),), then=(DAY,), forms=(*IN_MEMORY, "parquet")),
    Case("times as keys", (DAY, DAY.replace(hour=9)), "Hi", ["x"], beside=(DAY.replace(second=1),)),
    Case("times in a format", (DAY, DAY.replace(hour=9)), "On {x:%d %B}", beside=(DAY.replace(second=1),)),
    Case("names", ("Thandi", "Ann, Lee", 'Ann "A" Lee', "007", "1.0", "Nan"), beside=("Null",)),
    Case("accents", ("Jos\u00e9", "Zo\u00eb"), then=("Jose\u0301", "Zoe\u0308")),
    Case("accents as keys", ("Jos\u00e9",), "Hi", ["x"], then=("Jose\u0301",)),
    Case("no-break spaces", ("Ann Lee", "R1 250"), then=("Ann\u00a0Lee", "R1\u202f250")),
    Case("padded", ("Ann", "INV-1"), then=("Ann   ", " INV-1")),
    Case("padded keys", ("Ann", "INV-1"), "Hi", ["x"], then=("Ann   ", " INV-1\u00a0")),
    Case("no names", ("Ann",), beside=("nan", "None", "", " ", None), left_out=True),
    Case("empty keys", ("", "INV-1"), "Hi", ["x"], then=(None, "INV-1")),
)


def rows_of(values: Sequence[Any], first: int) -> list[dict[str, Any]]:
    """Return a row for each of the values, each of another person.

    :param first: the first one's number.
    """
    return [{"destination": str(first + n), "x": value} for n, value in enumerate(values)]


def in_form(rows: list[dict[str, Any]], form: str, folder: Path, chance: random.Random) -> Any:
    """Return rows in a form: a table in memory, or a folder with one or more files."""
    numbers, values = [row["destination"] for row in rows], [row["x"] for row in rows]
    if form == "dicts":
        return rows
    if form == "objects":
        return pd.DataFrame({"destination": numbers, "x": pd.Series(values, dtype=object)})
    if form == "frame":
        return pd.DataFrame(rows)
    if form == "table":
        return pa.table({"destination": numbers, "x": values})
    folder.mkdir()
    for name, (start, end) in enumerate(pairwise(sorted({0, chance.randint(1, len(rows)), len(rows)}))):
        part = {"destination": numbers[start:end], "x": values[start:end]}
        if form == "csv":
            pd.DataFrame(part).to_csv(folder / f"{name}.csv", index=False)
        else:
            pq.write_table(pa.table(part), folder / f"{name}.parquet")
    return folder


def send(stage: Stage, campaign: str, number: int, source: Any, case: Case) -> bool:
    """Send a table as a try of a campaign, and tell whether it was not refused.

    :param number: number of the attempt.
    """
    try:
        opened = open_source(source)
        preparation = Preparation(case.message, None, key_columns=case.keys)
        preparation.check(opened.schema)
        blocks = [list(_messages(preparation.prepare(batch, 0))) for batch in opened.batches(preparation.columns)]
    except InputError:
        return False
    sending = Sending(stage.sandbox.base_url, stage.reader, campaign, number, chunk_size=5, concurrency=2)
    sending.send(blocks)
    return sending.sender.error is None


def _messages(prepared: Any) -> Iterator[Outgoing]:
    for message in zip(prepared.keys, prepared.destinations, prepared.contents, strict=True):
        yield Outgoing(*message)


def play(stage: Stage, trial: int) -> Figures:
    """Send a campaign in one form and then in another, and judge who was texted."""
    case, chance = CASES[trial % len(CASES)], random.Random(trial)
    campaign = stage.new_campaign(f"values {trial}")
    first = FIRST_NUMBER + trial * PEOPLE
    then = case.then or case.given
    with TemporaryDirectory(prefix="airflow-provider-sms-values-") as folder:
        tables = [rows_of(case.given, first), rows_of((*then, *case.beside), first)]
        taken = []
        for number, rows in enumerate(tables, start=1):
            chance.shuffle(rows)
            source = in_form(rows, chance.choice(case.forms), Path(folder) / str(number), chance)
            taken.append(send(stage, campaign, number, source, case))
    texts = stage.sent_to({str(first + n) for n in range(PEOPLE)})
    expected = {str(first + n) for n in range(len(then) + (0 if case.left_out else len(case.beside)))}
    if case.refused:
        expected = set()
    return Figures(
        cases=1,
        duplicates=texts.total() - len(texts),
        # Somebody who was to be texted and was not, somebody else who was, or a table that should have been refused.
        lost=len(expected ^ texts.keys()) + sum(taken_one == case.refused for taken_one in taken),
    )


def run(
    open_store: Callable[[], LedgerBackend],
    quick: bool,  # noqa: FBT001  # the common signature of all sections
    *,
    count: int | None = None,
) -> Figures:
    """Run all cases on one kind of ledger, and print those that broke the promise.

    :param open_store: function that opens the shared ledger, like one more process.
    :param count: number of trials; None means each case once in a quick run, else 40 times.
    """
    trials = range(count if count is not None else len(CASES) * (QUICK if quick else FULL))
    return play_all(
        open_store, play, trials, lambda _, trial: f"the case {CASES[trial % len(CASES)].name!r} of {trial}"
    )
