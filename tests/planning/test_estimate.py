from __future__ import annotations

import json
from decimal import Decimal

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


def test_messages_parts_and_cost_add_up():
    """Messages, parts and cost are sums over all batches, by encoding, at the price of each number."""
    estimate = Estimate(Prices({"27": "0.1", "": 2}))
    estimate.add(*messages([NUMBER, "447012345678", NUMBER], ["Hi", "a" * 161, "ç" * 200]))
    estimate.add(*messages([NUMBER], ["Hi"], 3))
    assert (7, Decimal("4.5")) == (estimate.parts, estimate.cost)
    assert (estimate.ucs2_messages, estimate.ucs2_parts) == (1, 3)


def test_no_figure_holds_a_nul():
    """Airflow keeps XComs in PostgreSQL as jsonb, which takes no NUL: one in a text would fail the task."""
    estimate = estimated(["Ann\0", "Bob\0\0"])
    (character,) = estimate.as_json()["forcing"]
    assert character == {"code": "U+0000", "name": "no name", "messages": 2}
    assert "\\u0000" not in json.dumps(estimate.as_json())


def test_the_most_frequent_come_first():
    """Characters come by the number of their messages, and those with one number by their code."""
    found = estimated(["b\u0431 \u0430", "\u0430", "\u0432", "\u0413"]).forcing()
    assert [character["code"] for character in found] == ["U+0430", "U+0413", "U+0431", "U+0432"]


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


def test_the_figures_are_json_of_one_size():
    """An XCom holds numbers and at most ten characters."""
    estimate = estimated(["".join(map(chr, range(0x430, 0x43C))), "Hi \u2019"], prices=Prices(0.5))
    figures = estimate.as_json()
    characters = figures.pop("forcing")
    expected = {"ucs2_messages": 2, "ucs2_parts": 2, "most_parts": 1, "most_parts_row": 0}
    assert expected == json.loads(json.dumps(figures))
    first = {"code": "U+0430", "name": "CYRILLIC SMALL LETTER A", "messages": 1}
    assert (first, 10) == (characters[0], len(characters))
