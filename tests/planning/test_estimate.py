from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from support.parts import encoding

from airflow_provider_sms.messages.parts import BASIC, EXTENSION, count_parts, is_gsm
from airflow_provider_sms.planning.estimate import Estimate
from airflow_provider_sms.planning.prices import Prices

NUMBER = "27821234567"


def estimated(contents, estimate=None, first_row=0, prices=None):
    """Estimate texts to one number, as a batch of a source."""
    estimate = estimate or Estimate(prices or Prices())
    estimate.add(*messages([NUMBER] * len(contents), contents, first_row))
    return estimate


def messages(destinations, contents, first_row=0):
    """Make messages, which the estimate adds up, with their rows."""
    texts = pa.array(contents, pa.string())
    columns = {
        "destination": destinations,
        "content": texts,
        "parts": pa.array([*map(count_parts, contents)], pa.int32()),
        "is_ucs2": [not is_gsm(each) for each in contents],
    }
    return np.arange(first_row, first_row + len(contents)), pa.RecordBatch.from_pydict(columns)


def counts(estimate):
    return {chr(int(found["code"].removeprefix("U+"), 16)): found["messages"] for found in estimate.forcing()}


def test_the_figures_are_json_of_one_size():
    """An XCom holds numbers and at most ten characters, the most frequent first, and those alike by their code.

    Airflow keeps XComs in PostgreSQL as jsonb, which takes no NUL: one in a text would fail the task.
    """
    texts = ["".join(map(chr, range(0x430, 0x43C))), "Hi \u2019\0", "\u0435\u2019\0", "Bob\0"]
    figures = estimated(texts, prices=Prices(0.5)).as_json()
    characters = figures.pop("forcing")
    expected = {"ucs2_messages": 4, "ucs2_parts": 4, "most_parts": 1, "most_parts_row": 0}
    assert expected == json.loads(json.dumps(figures))
    assert [(each["code"], each["name"], each["messages"]) for each in characters[:4]] == [
        ("U+0000", "no name", 3),
        ("U+0435", "CYRILLIC SMALL LETTER IE", 2),
        ("U+2019", "RIGHT SINGLE QUOTATION MARK", 2),
        ("U+0430", "CYRILLIC SMALL LETTER A", 1),
    ]
    assert (len(characters), "\\u0000" in json.dumps(characters)) == (10, False)


@given(st.lists(st.text(st.sampled_from("ab€[éç\u2019😀\n"), max_size=80), max_size=12), st.integers(1, 5))
def test_an_estimate_is_that_of_its_texts(contents, batch):
    """Whatever the texts and the batches, the figures are those of counting one by one."""
    estimate = Estimate(Prices())
    for start in range(0, len(contents), batch):
        estimated(contents[start : start + batch], estimate, first_row=start)
    parts = [count_parts(content) for content in contents]
    forcing = [set(content) - set(BASIC + EXTENSION) for content in contents]
    expected = {character: sum(character in found for found in forcing) for character in set().union(*forcing)}
    assert expected == counts(estimate)
    assert (sum(parts), sum(parts)) == (estimate.parts, estimate.cost)
    assert sum(encoding(content) == "UCS-2" for content in contents) == estimate.ucs2_messages
    assert (parts.index(max(parts)) if parts else None) == estimate.most_parts_row
