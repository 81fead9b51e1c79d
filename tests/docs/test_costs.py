from __future__ import annotations

import re
from decimal import Decimal

import pandas as pd
import pytest
from support.pages import ROOT, blocks
from support.parts import encoding
from support.planning import planned

from airflow_provider_sms.messages import parts
from airflow_provider_sms.messages.parts import count_parts

PAGE, TEXTS = (ROOT / "docs" / name for name in ("before-sending.md", "texts.md"))
(SENTENCE,) = (block.code.strip() for block in blocks(PAGE, "text") if "{first_name}" in block.code)
(PLAN,) = (block.code for block in blocks(PAGE, "text") if "messages in 10 requests" in block.code)
(PRICES,) = re.findall(r"^A thousand customers, with `cost_per_part=(\{.*\})`", PAGE.read_text(), re.MULTILINE)
PRICES = eval(PRICES)


def cells(page, section, columns):
    """Return the rows of the tables of a section that have so many columns, each as its cells, without header."""
    text = page.read_text()
    part = text[text.index(f"\n## {section}\n") + 1 :]
    part = part.partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if len(row) == columns and not set("".join(row)) <= set("-:")]


def bold(cell):
    return int(re.sub(r"\D", "", cell))


class Group:
    """A row of the sum."""

    def __init__(self, row):
        count, self.prefix, self.name, self.encoding, parts_each, price, cost = row
        self.count, self.parts, self.price, self.cost = int(count), int(parts_each), Decimal(price), Decimal(cost)

    def people(self):
        """Return the rows of these customers in the page's table."""
        return [{"destination": f"{self.prefix}{n:07}", "first_name": self.name} for n in range(self.count)]


_, *GROUPS, TOTAL = cells(PAGE, "Cost", 7)
GROUPS = [Group(row) for row in GROUPS]


def customers():
    """Return the page's thousand customers."""
    return pd.DataFrame([person for group in GROUPS for person in group.people()])


def test_the_sizes_of_parts_are_those_of_the_code():
    """The table of encodings has the constants that the package counts with."""
    _, gsm, ucs2 = cells(TEXTS, "SMS parts", 4)[:3]
    assert [gsm[0], *map(int, gsm[2:])] == ["GSM-7", parts.SEPTETS_SINGLE, parts.SEPTETS_PART]
    assert [ucs2[0], *map(int, ucs2[2:])] == ["UCS-2", parts.UNITS_SINGLE, parts.UNITS_PART]


@pytest.mark.parametrize("row", cells(TEXTS, "SMS parts", 4)[4:], ids=lambda row: row[0])
def test_each_text_takes_the_parts_of_the_page(row):
    """Characters, encoding and parts of each text are those that the package counts."""
    shown, characters, name, count = row
    repeated = re.fullmatch(r"(\d+) times `(.)`", shown)
    text = repeated[2] * int(repeated[1]) if repeated else shown.strip("`")
    assert (len(text), encoding(text), count_parts(text)) == (int(characters), name, int(count))


def test_the_sum_adds_up():
    """Each row is its customers times parts times price, and the last row is the sum of all others."""
    assert [group.count * group.parts * group.price for group in GROUPS] == [group.cost for group in GROUPS]
    totals = [sum(group.count for group in GROUPS), sum(group.count * group.parts for group in GROUPS)]
    assert [bold(TOTAL[0]), bold(TOTAL[4]), bold(TOTAL[6])] == [*totals, sum(group.cost for group in GROUPS)]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_each_row_of_the_sum_is_what_the_package_counts(group):
    """Encoding, parts and credits of some customers are those of their plan."""
    text = SENTENCE.format(first_name=group.name)
    assert (encoding(text), count_parts(text)) == (group.encoding, group.parts)


def test_the_plan_of_the_page_is_that_of_its_customers():
    """The plan that the page shows has the lines, and the sum, of the table."""
    table = customers()
    table["text"] = [SENTENCE.format(first_name=name) for name in table["first_name"]]
    plan = planned(table, cost_per_part=PRICES)
    made = [line.strip() for line in plan.table().splitlines()]
    assert [line for line in PLAN.splitlines() if line.strip() not in made] == []
    assert (plan.to_send, plan.estimate.parts, plan.estimate.cost) == (bold(TOTAL[0]), bold(TOTAL[4]), bold(TOTAL[6]))


def test_the_sandbox_charges_the_sum(send, sandbox, tmp_path):
    """A send of the page's text is charged what the page says, and what its plan said."""
    path = tmp_path / "customers.parquet"
    customers().to_parquet(path)
    ran = send(str(path), SENTENCE, cost_per_part=PRICES)
    assert (ran.state, ran.summary["accepted"]) == ("success", bold(TOTAL[0]))
    assert (ran.summary["parts"], ran.summary["cost"]) == (bold(TOTAL[4]), bold(TOTAL[6]))
