from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from pyarrow import parquet
from support.airflow import stored_xcoms
from support.pages import ROOT

from airflow_provider_sms.sandbox.config import SandboxConfig

PAGE = ROOT / "docs" / "operators.md"
SIZES = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE.read_text(), re.MULTILINE)
"""Rows, requests, and bytes of the XComs ``return_value`` and ``responses``."""
CLOSE = 0.03
"""Digits of ids, costs and balances differ from run to run."""

DAG = """
from airflow.sdk import DAG

from airflow_provider_sms.operators.sms import BulkSmsOperator

with DAG("text_many", schedule=None):
    BulkSmsOperator(
        task_id="send", source="/data/people.parquet", message="Hi", campaign="statements-2026-01", concurrency=16
    )
"""


@pytest.fixture
def sms_sandbox_config():
    """Credit for the largest table."""
    return SandboxConfig(token="sandbox-token-0123", balance=900_000)


@pytest.mark.slow
@pytest.mark.parametrize("figures", SIZES, ids="-".join)
def test_the_xcoms_are_as_large_as_the_page_says(run_file, sandbox, tmp_path, figures):
    """What a task pushes grows with its requests up to 100, and is small beyond."""
    rows, requests, returned, responses = (int(figure.replace(",", "")) for figure in figures)
    numbers = [str(27_820_000_000 + number) for number in range(rows)]
    parquet.write_table(pa.table({"destination": numbers}), tmp_path / "people.parquet")
    summary = run_file(DAG).xcoms["send"]
    assert (summary["accepted"], summary["requests"]) == (rows, requests)
    (_, pushed), *_ = reversed(stored_xcoms(dag_id="text_many", key="responses"))
    assert (returned, responses) == pytest.approx((len(json.dumps(summary)), len(json.dumps(pushed))), rel=CLOSE)
