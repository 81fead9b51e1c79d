from __future__ import annotations

import re

import pandas as pd
import pytest
from support.pages import ROOT, blocks, dags, without_dry_run

PAGE = ROOT / "docs" / "quickstart.md"
PLANNING, SCHEDULED, LARGE = dags(PAGE)
FIRST = without_dry_run(PLANNING)
COMMANDS = "\n".join(block.code for block in blocks(PAGE, "sh"))


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The table that the page makes, where the page puts it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (rows,) = re.findall(r"cat > ~/(\S+) <<'CSV'\n(.*?)^CSV$", COMMANDS, re.MULTILINE | re.DOTALL)
    path = tmp_path / rows[0]
    path.parent.mkdir()
    path.write_text(rows[1])
    return path


def add_rows(table):
    """Add the rows that the page adds, one at each step."""
    for row in re.findall(r"^echo '(.*)' >>", COMMANDS, re.MULTILINE):
        with table.open("a") as file:
            file.write(row + "\n")
        yield


def summary(ran):
    return ran.xcoms["text_them"]


def test_each_invoice_is_texted_once(run_file, sandbox, table):
    """The first DAG plans, texts three people, then the fourth alone, as the page and its log lines say."""
    run_file(PLANNING)
    assert sandbox.state.accepted == []
    said = [block.code.strip() for block in blocks(PAGE, "text") if block.code.startswith("Campaign")]
    steps = add_rows(table)
    for line in said:
        counts = {name: int(count) for name, count in re.findall(r"(\w+) (\d+)[,;]", line)}
        assert counts.items() <= summary(run_file(FIRST)).items()
        next(steps, None)
    assert len(said) == 2
    assert [text for _, text in sandbox.state.accepted_messages] == [
        "Hi Thandeka, invoice INV-1041 of R1250.50 is overdue. Paid already? Thank you.",
        "Hi Pieter, invoice INV-1042 of R89.90 is overdue. Paid already? Thank you.",
        "Hi Naledi, invoice INV-1057 of R12400.00 is overdue. Paid already? Thank you.",
        "Hi Sipho, invoice INV-1060 of R310.00 is overdue. Paid already? Thank you.",
    ]


def test_a_lost_answer_fails_the_scheduled_dag_once_and_alerts(run_file, sandbox, table):
    """The second DAG knows whom the first one texted; when an answer is lost it fails and alerts."""
    steps = add_rows(table)
    next(steps)
    run_file(FIRST)
    assert summary(run_file(SCHEDULED))["already_sent"] == 4
    next(steps)
    sandbox.state.set_faults([{"kind": "drop_after"}])
    ran = run_file(SCHEDULED)
    assert (ran.state, summary(ran)["unknown"]) == ("failed", 1)
    assert sandbox.state.accepted_messages[4:] == [
        ("27820000005", "Hi Lerato, invoice INV-1061 of R75.00 is overdue. Paid already? Thank you."),
        ("27820000099", "remind_customers: text_them failed, see Airflow"),
    ]


def test_a_large_table_is_planned_sent_and_reported(run_file, sandbox, tmp_path):
    """The third DAG leaves out opt-outs and bad numbers, and its report has the outcome of each row."""
    people = [{"customer_id": n, "mobile": f"082{n:07d}", "first_name": f"Name{n}"} for n in range(1, 301)]
    people[7]["mobile"] = "none"
    pd.DataFrame(people).to_parquet(tmp_path / "customers.parquet")
    pd.DataFrame(people[:4]).to_parquet(tmp_path / "opt-outs.parquet")
    assert summary(run_file(LARGE))["not_sent"] == 295
    assert sandbox.state.accepted == []
    told = summary(run_file(without_dry_run(LARGE)))
    assert (told["accepted"], told["suppressed"], told["invalid"]) == (295, 4, 1)
    report = pd.read_parquet(told["report"])
    assert report["status"].value_counts().to_dict() == {"accepted": 295, "suppressed": 4, "invalid": 1}
