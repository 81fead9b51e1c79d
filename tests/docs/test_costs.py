from __future__ import annotations

import re
from decimal import Decimal

import pandas as pd
import pytest
from support.pages import ROOT, blocks
from support.parts import encoding
from support.planning import planned

from airflow_provider_sms.messages.parts import count_parts

PAGE, TEXTS = (ROOT / "docs" / name for name in ("before-sending.md", "texts.md"))


def cells(page, section, columns):
    """Return the rows of the tables of a section that have so many columns, each as its cells, without header."""
    text = page.read_text()
    part = text[text.index(f"\n## {section}\n") + 1 :]
    part = part.partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if len(row) == columns and not set("".join(row)) <= set("-:")]


@pytest.mark.parametrize("row", cells(TEXTS, "SMS parts", 4)[4:], ids=lambda row: row[0])
def test_each_text_takes_the_parts_of_the_page(row):
    """Characters, encoding and parts of each text are those that the package counts."""
    shown, characters, name, count = row
    repeated = re.fullmatch(r"(\d+) times `(.)`", shown)
    text = repeated[2] * int(repeated[1]) if repeated else shown.strip("`")
    assert (len(text), encoding(text), count_parts(text)) == (int(characters), name, int(count))


def test_the_plan_of_the_page_is_that_of_its_customers():
    """Each row of the sum is what the package counts, and the plan that the page shows has its lines and its sum."""
    (sentence,) = (block.code.strip() for block in blocks(PAGE, "text") if "{first_name}" in block.code)
    (shown,) = (block.code for block in blocks(PAGE, "text") if "messages in 10 requests" in block.code)
    (prices,) = re.findall(r"^A thousand customers, with `cost_per_part=(\{.*\})`", PAGE.read_text(), re.MULTILINE)
    _, *groups, total = cells(PAGE, "Cost", 7)
    rows = []
    for count, prefix, name, code, each, price, cost in groups:
        text = sentence.format(first_name=name)
        assert (encoding(text), count_parts(text)) == (code, int(each))
        assert int(count) * int(each) * Decimal(price) == Decimal(cost)
        rows += [{"destination": f"{prefix}{n:07}", "text": text} for n in range(int(count))]
    plan = planned(pd.DataFrame(rows), cost_per_part=eval(prices))
    made = [line.strip() for line in plan.table().splitlines()]
    assert [line for line in shown.splitlines() if line.strip() not in made] == []
    summed = [int(re.sub(r"\D", "", total[column])) for column in (0, 4, 6)]
    assert [plan.to_send, plan.estimate.parts, plan.estimate.cost] == summed
