from __future__ import annotations

import json
from collections import Counter

import pandas as pd
import pytest
from support.pages import ROOT, blocks, dags

PAGE = ROOT / "docs" / "migration.md"
LOOP, MAPPED_HTTP, AFTER = dags(PAGE)
SUPPRESS, BACK = (block.code for block in blocks(PAGE, "python") if not block.is_dag)
PEOPLE = 250
TEXTED = 120


@pytest.fixture
def people(tmp_path, sandbox, monkeypatch):
    """The tables that the page speaks of, and what its old DAGs need to reach the sandbox."""
    frame = pd.DataFrame(
        {
            "mobile": [str(27_820_000_000 + n) for n in range(PEOPLE)],
            "first_name": [f"Name{n}" for n in range(PEOPLE)],
            "amount": [n + 0.5 for n in range(PEOPLE)],
        }
    )
    frame.to_parquet(tmp_path / "customers.parquet")
    frame[:TEXTED].to_parquet(tmp_path / "texted_by_the_old_dag.parquet")
    token = sandbox.state.config.token
    monkeypatch.setenv("SMS_URL", sandbox.base_url)
    monkeypatch.setenv("SMS_TOKEN", token)
    http = {"conn_type": "http", "host": sandbox.base_url, "password": token}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_HTTP", json.dumps(http))
    return [(row.mobile, f"Hi {row.first_name}, R{row.amount:.2f} is due.") for row in frame.itertuples()]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*operator_helpers.determine_kwargs")  # the HTTP provider's own import
@pytest.mark.parametrize(("code", "again"), [(LOOP, 2), (MAPPED_HTTP, 2), (AFTER, 1)], ids=["loop", "http", "after"])
def test_before_and_after_send_the_same_and_only_ours_remembers(run_file, sandbox, people, code, again):
    """All three DAGs text the same people with the same words; run again, the old ones text everybody again."""
    assert run_file(code).state == "success"
    assert Counter(people) == Counter(sandbox.state.accepted_messages)
    assert run_file(code).state == "success"
    assert Counter(dict.fromkeys(people, again)) == Counter(sandbox.state.accepted_messages)


def test_who_was_texted_is_left_out(run_file, sandbox, people):
    """The list of those whom the old DAG has texted suppresses them, and no one else."""
    argument = SUPPRESS.partition("#")[0].strip().replace(" = ", "=")
    summary = run_file(AFTER.replace("retries=3", argument)).xcoms["send"]
    assert (summary["suppressed"], summary["accepted"]) == (TEXTED, PEOPLE - TEXTED)
    assert Counter(people[TEXTED:]) == Counter(sandbox.state.accepted_messages)


def test_the_report_says_what_is_left_for_the_old_dag(run_file, sandbox, people, tmp_path):
    """After a send that was refused half-way, the rows that the page picks are those that nobody has texted."""
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "status", "status": 403, "persistent": True}])
    code = AFTER.replace("retries=3", 'report="/data/report.parquet", concurrency=1')
    assert run_file(code).state == "failed"
    exec(BACK.replace("/data/", f"{tmp_path}/"), {})
    rest = set(pd.read_parquet(tmp_path / "customers_rest.parquet")["mobile"])
    texted = {number for number, _ in sandbox.state.accepted_messages}
    assert (len(texted), len(rest), texted & rest) == (100, 150, set())
