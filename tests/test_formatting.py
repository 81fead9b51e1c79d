from __future__ import annotations

import ast
import re
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest

from airflow_provider_sms import formatting

PACKAGE = Path(formatting.__file__).parent
PLURAL = re.compile(r" ((?:[a-z-]+ )?(?:[a-z]+s|people))\b")
"""A plural noun, with an adjective or without, and what looks like one."""
CONVERSION = re.compile(rf"(%[-+ #0]*\d*(?:\.\d+)?[dfgis]){PLURAL.pattern}")
NO_NOUNS = {
    "allows",
    "as",
    "does",
    "has",
    "holds",
    "in",
    "is",
    "its",
    "leads",
    "names",
    "of",
}
NO_NOUNS |= {"returns", "runs", "takes", "waits", "was"}
"""Words of what looks like a plural noun and is none."""
ALWAYS_MANY = {
    ("cli/balance_evidence.py", "{money(amount)} credits"): "written with decimals: 1.00 credits",
    ("execution/xcom.py", "%d responses"): "above MAX_RESPONSES",
    ("ledger/name_rules.py", "{len(name)} characters"): "above MAX_CHARACTERS",
    ("notifications/sms.py", "{len(numbers)} numbers"): "above MAX_PEOPLE",
    ("recipients/columns.py", "{len(found)} columns"): "above 1",
    ("recipients/files.py", "%d files"): "above 1, since one of them has rows and another none",
    ("send_window/window.py", "{len(names)} time zones"): "above 1",
    ("sending/sender.py", "%d times"): "MAX_BUSY",
    ("sending/stop_conditions.py", "{seen} messages"): "at least FIRST_JUDGED",
}
"""File and words → why the count in them is never 1."""


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "—"),
        ("3", "3.00"),
        (Decimal("1234567.8"), "1,234,567.80"),
        ("0.3565", "0.3565"),
        (145.5, "145.50"),
        (Decimal("1E+3"), "1,000.00"),
        ("0.12345678901", "0.123457"),
    ],
)
def test_money_keeps_its_decimals(value, written):
    """At least two of them, and no more than a reader can use."""
    assert formatting.money(value) == written


@pytest.mark.parametrize(
    ("seconds", "written"), [(0.4, "0 s"), (61, "61 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172800, "2 d")]
)
def test_a_length_of_time_is_written_in_the_unit_that_says_most(seconds, written):
    """Two of a unit at least, so that rounding hides little."""
    assert formatting.duration(seconds) == written


@pytest.mark.parametrize(
    ("part", "whole", "share"),
    [(1, 4, 25.0), (5, 4, 100.0), (0, 0, None), (None, 4, None), (4, None, None), (-1, 4, 0.0)],
)
def test_a_share_is_between_nothing_and_all(part, whole, share):
    """Where either is not known, so is the share."""
    assert formatting.percent(part, whole) == share


def test_moments_are_utc_and_counts_have_their_words():
    """Pages and commands write them alike."""
    assert formatting.utc(1_000_000_000.0) == "2001-09-09 01:46:40"
    assert formatting.iso(1_000_000_000.0) == "2001-09-09T01:46:40+00:00"
    assert formatting.utc(None) == "—"
    assert [formatting.counted(n, "person", "people") for n in (0, 1, 1200)] == ["0 people", "1 person", "1,200 people"]


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "rows are"), (1, "row is"), (2, "rows are"), (Decimal(1), "row is"), (1.0, "row is"), (0.5, "rows are")],
)
def test_a_word_is_singular_with_one_alone(count, words):
    """Also a verb, and with a count that is no integer, such as credits or seconds."""
    assert f"{formatting.by_count(count, 'row')} {formatting.by_count(count, 'is', 'are')}" == words


def written_after_values(code):
    """Yield each value that code writes into a text, as it stands there, with what looks like a plural noun after it.

    Left out are constants, whose names are in capitals, and the words of ``by_count`` and ``counted``.
    """
    tree = ast.parse(code)
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for value, text in pairwise(node.values):
                if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                    written = ast.unparse(value.value)
                    if not written.isupper() and not written.startswith(("by_count(", "counted(")):
                        found = PLURAL.match(text.value)
                        yield from [(f"{{{written}}}", found[1])] if found else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield from CONVERSION.findall(node.value)


def is_noun(phrase):
    return NO_NOUNS.isdisjoint(phrase.split())


@pytest.mark.parametrize(
    ("code", "plurals"),
    [
        ('f"{count:,} rows of {other} bad people"', ["{count} rows", "{other} bad people"]),
        ('f"{len(rows)} " "rows"', ["{len(rows)} rows"]),
        ('log.info("%d rows, %.2f credits", rows, cost)', ["%d rows", "%.2f credits"]),
        ('log.info("%d %s", rows, by_count(rows, "row"))', []),
        ("f\"{count} {by_count(count, 'row')} {counted(count, 'row')} rows {MAX_ROWS} rows\"", []),
        ('f"{path} is there, {count} row, {count} of its rows, {count}rows"', []),
        ('def f():\n    """%d rows"""', []),
    ],
)
def test_plurals_are_found(code, plurals):
    """In an f-string and for ``%``, and neither in documentation nor where the helper writes the word."""
    assert [f"{value} {phrase}" for value, phrase in written_after_values(code) if is_noun(phrase)] == plurals


def test_a_noun_after_a_count_is_written_by_the_helper():
    """So that one row is not *1 rows*; each exception is needed, and so is each word that is no noun."""
    found = {
        (str(path.relative_to(PACKAGE)), value, phrase)
        for path in PACKAGE.rglob("*.py")
        for value, phrase in written_after_values(path.read_text())
    }
    nouns = {(path, f"{value} {phrase}") for path, value, phrase in found if is_noun(phrase)}
    assert sorted(nouns) == sorted(ALWAYS_MANY)
    assert {word for *_, phrase in found for word in phrase.split() if word in NO_NOUNS} == NO_NOUNS
