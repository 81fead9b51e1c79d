from __future__ import annotations

import json
import re

import pandas as pd
from support.pages import ROOT, dags

PAGE = ROOT / "docs" / "other-classes.md"
TEXT = PAGE.read_text()
WAITS, WAITS_FOR_A_TABLE = (code for code in dags(PAGE) if "BalanceSensor(" in code)


def test_the_sensor_of_the_page_returns_what_the_page_says(run_file, sandbox):
    """With credit it waits for nothing."""
    (returned,) = re.findall(r"^The sensor returns `(.+)`\.$", TEXT, re.MULTILINE)
    sandbox.state.set_balance(2000)
    ran = run_file(WAITS)
    assert (ran.state, ran.xcoms) == ("success", {"wait_for_credit": json.loads(returned)})


def test_the_table_of_the_page_needs_what_the_page_says(run_file, sandbox, tmp_path):
    """A text of one part to each of 200 people costs 200 credits."""
    people = {"destination": [f"082{n:07d}" for n in range(200)], "first_name": ["Ann"] * 200}
    pd.DataFrame(people).to_parquet(tmp_path / "people.parquet")
    assert "] 200 messages cost about 200 credits\n" in TEXT
    sandbox.state.set_balance(200)
    assert run_file(WAITS_FOR_A_TABLE).xcoms == {"wait": {"balance": 200.0, "post_paid": False}}
