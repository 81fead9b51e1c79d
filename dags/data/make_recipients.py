"""Writes ``recipients.parquet``: made-up people, their numbers stored as untidily as people store them.

Run it to write the file anew; it gives the same rows every time. The numbers are made up as well: those of South Africa
have 000 in the middle, the others are from the ranges that the United Kingdom and the United States keep for fiction.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PATH = Path(__file__).with_name("recipients.parquet")
SEED = 20260131

SCHEMA = pa.schema(
    [("destination", pa.string()), ("first_name", pa.string()), ("amount", pa.float64()), ("city", pa.string())]
)

# {a} is the network, {b} and {c} are the rest: 82, 000 and 0123.
LOCAL_FORMS = (
    "27{a}{b}{c}",
    "+27{a}{b}{c}",
    "0027{a}{b}{c}",
    "0{a}{b}{c}",
    "0{a} {b} {c}",
    "(0{a}) {b}-{c}",
    "0{a}-{b}-{c}",
    "0{a}.{b}.{c}",
    "+27 {a} {b} {c}",
    "+27 (0){a} {b} {c}",
    "  0{a}{b}{c} ",
    "0{a}\u00a0{b}\u00a0{c}",  # non-breaking spaces, as copied from a web page
    "27{a}{b}{c}.0",  # went through a column of floats
    "{a}{b}{c}",  # a spreadsheet took the leading zero
)
FOREIGN_FORMS = (
    "+44 7700 900{c}",
    "0044 7700 900{c}",
    "+1 (202) 555-0{c}",
)
NETWORKS = ("60", "63", "66", "72", "73", "76", "82", "82", "82", "83", "83", "84")
NAMES = (
    "Amahle", "Anathi", "Ben", "Chanté", "Dineo", "Elize", "Fatima", "Graça", "Hendrik", "Imraan", "Johan", "Kagiso",
    "Lerato", "Mandla", "Naledi", "O'Neill", "Pieter", "Renée", "Sipho", "Thandeka", "Unathi", "Vuyo", "Yusuf", "Zoë",
)  # fmt: skip
CITIES = ("Bloemfontein", "Cape Town", "Durban", "Gqeberha", "Johannesburg", "Kimberley", "Mbombela", "Polokwane")

PEOPLE = 1018
FOREIGN_PEOPLE = 9
REPEATS = 12
UNUSABLE = (
    None,
    None,
    None,
    "",
    "",
    "   ",
    "-",
    "2.78E+10",  # a spreadsheet took the digits
    "2.78E+10",
    "n/a",
    "unknown",
    "082 OOO O123",  # letters for zeros
    "27 82 000 0123 4567",
    "0820000123 / 0830000123",
    "447700900123",  # another country's, and nothing says so
)
NAMELESS = 5
"""Rows without a first name: a text that greets people by it cannot be written to them."""

Row = dict[str, "str | float | None"]


def make_rows() -> list[Row]:
    """Make the rows: 1,018 people, 12 of them twice, and 20 rows that nobody can text."""
    # Of Random only random() is promised to give the same numbers in every version of Python.
    draw = random.Random(SEED).random  # noqa: S311 - nothing here is a secret

    def pick(options: tuple[str, ...]) -> str:
        return options[int(draw() * len(options))]

    def row(destination: str | None) -> Row:
        return {
            "destination": destination,
            "first_name": pick(NAMES),
            "amount": round(50 + draw() * 4950, 2),
            "city": pick(CITIES),
        }

    def local(serial: int, network: str) -> str:
        return pick(LOCAL_FORMS).format(a=network, b="000", c=f"{serial:04}")

    networks = [pick(NETWORKS) for _ in range(PEOPLE - FOREIGN_PEOPLE)]
    people = [row(local(serial, network)) for serial, network in enumerate(networks)]
    repeats = [
        {**people[serial], "destination": local(serial, networks[serial])}
        for serial in (int(draw() * len(people)) for _ in range(REPEATS))
    ]
    foreign = [row(pick(FOREIGN_FORMS).format(c=100 + serial)) for serial in range(FOREIGN_PEOPLE)]
    unusable = [row(destination) for destination in UNUSABLE]
    nameless = [{**row(local(PEOPLE + serial, "82")), "first_name": None} for serial in range(NAMELESS)]
    return sorted([*people, *repeats, *foreign, *unusable, *nameless], key=lambda _: draw())


def main() -> None:
    """Write the file."""
    pq.write_table(pa.Table.from_pylist(make_rows(), schema=SCHEMA), PATH, compression="zstd")


if __name__ == "__main__":
    main()
