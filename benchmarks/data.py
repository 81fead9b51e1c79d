"""Tables of made-up people: wide, in several files, with unordered numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

MESSAGE = "Hi {first_name}, your balance is R{amount:.2f}. Reply STOP to opt out."
CHUNK = 100
"""Messages in a request."""
FIRST_NUMBER = 27_600_000_000
SEED = 20_261_121
FILES = 4
ROW_GROUP = 100_000
NAMES = ("Thandi", "Sipho", "Anna", "Pieter", "Lerato", "José", "Zanele", "Kagiso")
CITIES = 1_000


def table_of_people(folder: Path, rows: int) -> str:
    """Return the path of a table with as many rows: a directory of Parquet files, which is written at the first call.

    The same number of rows always yields the same table. It has eight columns, of which the message needs three.
    """
    target = folder / f"people-{rows}"
    if not target.exists():
        target.mkdir(parents=True)
        rng = np.random.default_rng(SEED)
        # Shuffled over the whole range, so that neighbours in a file have unrelated numbers.
        order = rng.permutation(np.arange(rows))
        for number, part in enumerate(np.array_split(order, FILES)):
            pq.write_table(_people(part, rng), target / f"part-{number:05}.parquet", row_group_size=ROW_GROUP)
    return str(target)


def _people(people: np.ndarray, rng: np.random.Generator) -> pa.Table:
    count = len(people)
    joined = rng.integers(1_400_000_000, 1_800_000_000, count)
    return pa.table(
        {
            "id": people,
            "destination": pa.array(people + FIRST_NUMBER).cast(pa.string()),
            "first_name": pa.array(NAMES).take(pa.array(rng.integers(0, len(NAMES), count))),
            "amount": np.round(rng.random(count) * 500, 2),
            "city": pa.array(rng.integers(0, CITIES, count)).cast(pa.string()),
            "joined_at": pa.array(joined).cast(pa.timestamp("s")),
            "subscribed": rng.integers(0, 2, count).astype(bool),
            "note": pa.repeat("joined at the spring fair, prefers to be written to", count),
        }
    )
