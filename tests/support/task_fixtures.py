from __future__ import annotations

from collections import Counter

import pytest


def numbers(count):
    return [str(27_820_000_000 + n) for n in range(count)]


@pytest.fixture
def people(tmp_path):
    """Write a Parquet of that many people."""
    import pandas as pd

    def people(count, **columns):
        frame = pd.DataFrame(
            {"destination": numbers(count), "first_name": [f"Name{n}" for n in range(count)], **columns}
        )
        path = tmp_path / f"people-{count}.parquet"
        frame.to_parquet(path)
        return str(path)

    return people


@pytest.fixture
def send(sms_default, ledger_path):
    """Run a BulkSmsOperator in Airflow, on a ledger of its own."""
    from airflow_provider_sms.operators.sms import BulkSmsOperator
    from support.airflow import run_task

    def send(source, message="Hi {first_name}", *, retries=0, **arguments):
        return run_task(
            lambda: BulkSmsOperator(task_id="send", source=source, message=message, **arguments), retries=retries
        )

    return send


@pytest.fixture
def witnessed(sandbox):
    """Count how often each person got each text."""
    return lambda: Counter(sandbox.state.accepted_messages)
