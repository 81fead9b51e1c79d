from __future__ import annotations

import pandas as pd
import pytest
from support.pages import ROOT, dags

(CODE,) = (code for code in dags(ROOT / "docs" / "operators.md") if 'DAG("remind_and_look"' in code)


@pytest.fixture
def sms_sandbox_config():
    """Credit for the first request."""
    from airflow_provider_sms.sandbox.config import SandboxConfig

    return SandboxConfig(token="sandbox-token-0123", balance=100)


@pytest.fixture
def told(monkeypatch):
    """What the DAG's callback posts to a chat."""
    import requests

    said = []
    monkeypatch.setattr(requests, "post", lambda url, json, timeout: said.append(json["text"]))
    return said


def test_a_task_reads_who_got_no_text_and_an_alert_costs_no_credit(run_file, sandbox, tmp_path, told):
    """Where the credit ends half-way, the page's DAG writes down who got none, and why, and tells a chat."""
    people = {
        "destination": [str(27_820_000_000 + n) for n in range(150)],
        "first_name": [f"Name{n}" for n in range(150)],
        "invoice": [f"INV-{n}" for n in range(150)],
    }
    pd.DataFrame(people).to_parquet(tmp_path / "overdue.parquet")
    ran = run_file(CODE.replace("report=REPORT", "report=REPORT, concurrency=1"))
    assert ran.state == "success"
    rest = pd.read_parquet(tmp_path / "not_texted.parquet")
    texted = {number for number, _ in sandbox.state.accepted_messages}
    assert set(rest["destination"]) == set(people["destination"]) - texted
    assert (len(texted), set(rest["status"])) == (100, {"not_sent"})
    assert rest["reason"].notna().all()
    assert [said.partition(": ")[0] for said in told] == ["text_them failed"]
