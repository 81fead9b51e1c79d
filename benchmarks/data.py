"""Tables of made-up people: wide, in several files, with unordered numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

MESSAGE = "Hi {first_name}, your balance is R{amount:.2f}. Reply STOP to opt out."
FIRST_NUMBER = 27_600_000_000
SEED = 20_261_121
ROW_GROUP = 100_000
NAMES = ("Thandi", "Sipho", "Anna", "Pieter", "Lerato", "José", "Zanele", "Kagiso")
CITIES = 1_000


def write_table(folder: Path, rows: int, files: int = 4) -> str:
    """Write people as a directory of Parquet files, unless the directory exists, and return its path.

    The same number of rows always yields the same table. It has eight columns, of which the message needs three.

    :param rows: number of rows, below a thousand million.
    :param files: number of files, of nearly the same size.
    """
    target = folder / f"people-{rows}-{files}"
    if target.exists():
        return str(target)
    unfinished = target.with_suffix(".unfinished")
    unfinished.mkdir(parents=True)
    rng = np.random.default_rng(SEED)
    # Shuffled over the whole range, so that neighbours in a file have unrelated numbers.
    order = rng.permutation(np.arange(rows, dtype=np.uint32))
    for number, part in enumerate(np.array_split(order, files)):
        _write_file(unfinished / f"part-{number:05}.parquet", part, rng)
    unfinished.rename(target)
    return str(target)


def _write_file(path: Path, order: np.ndarray, rng: np.random.Generator) -> None:
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for start in range(0, len(order), ROW_GROUP):
            writer.write_table(_people(order[start : start + ROW_GROUP].astype(np.int64), rng))


def _people(people: np.ndarray, rng: np.random.Generator) -> pa.Table:
    count = len(people)
    columns = [
        pa.array(people),
        pa.array(people + FIRST_NUMBER).cast(pa.string()),
        pa.array(NAMES).take(pa.array(rng.integers(0, len(NAMES), count))),
        pa.array(np.round(rng.random(count) * 500, 2)),
        pa.array(rng.integers(0, CITIES, count)).cast(pa.string()),
        pa.array(rng.integers(1_400_000_000, 1_800_000_000, count)).cast(pa.timestamp("s")),
        pa.array(rng.random(count) < 0.5),  # noqa: PLR2004 - half of them
        pa.array(np.full(count, "joined at the spring fair, prefers to be written to")),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("destination", pa.string()),
        ("first_name", pa.string()),
        ("amount", pa.float64()),
        ("city", pa.string()),
        ("joined_at", pa.timestamp("s")),
        ("subscribed", pa.bool_()),
        ("note", pa.string()),
    ]
)
