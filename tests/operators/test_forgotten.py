"""What a task does after a person was forgotten: nobody is texted twice, and what it reports is true."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing

import pyarrow.parquet as pq
import pytest
from support.task_fixtures import numbers

from airflow_provider_sms.cli.main import main
from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.requests import texted
from airflow_provider_sms.reporting.summary import COUNTS

FIRST = numbers(1)[0]


@pytest.fixture(params=["sqlite", "postgresql"], autouse=True)
def ledger(request, ledger_path, airflow_home, monkeypatch):
    """The ledger of this test: in a file, or on a server."""
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_ledger_url")
        fields = {"conn_type": "postgres", "host": url.query["host"], "schema": url.database, "login": url.username}
        monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps(fields))
        monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "sms_ledger")


def forget():
    main(["forget", FIRST, "--yes"])


def counts(ran):
    return {name: ran.summary[name] for name in COUNTS if ran.summary[name]}


def test_a_campaign_texts_a_forgotten_person_once(send, people, witnessed, tmp_path):
    """Run again with the same table it sends nothing, and summary and report have everybody."""
    send(people(5), campaign="spring")
    forget()
    again = send(people(5), campaign="spring", report=str(tmp_path / "rows.parquet"))
    assert (again.state, counts(again)) == ("success", {"already_sent": 5})
    assert set(witnessed().values()) == {1}
    rows = pq.read_table(tmp_path / "rows.parquet")
    assert Counter(rows["status"].to_pylist()) == {"already_sent": 5}


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "texts"), [("fail", 1), ("resend", 2)])
def test_an_unknown_message_to_a_forgotten_person_follows_the_policy(send, people, sandbox, witnessed, policy, texts):
    """It is sent again where everybody else's is, and nowhere else; only then the ledger has the number again."""
    sandbox.state.set_faults([{"kind": "status", "status": 500, "accepted": True}])
    lost = send(people(5), campaign="spring")
    assert (lost.state, counts(lost)) == ("failed", {"unknown": 5})
    forget()
    again = send(people(5), campaign="spring", on_unknown=policy)
    assert counts(again) == ({"unknown": 5} if policy == "fail" else {"accepted": 5})
    assert set(witnessed().values()) == {texts}
    with closing(open_ledger(None)) as store:
        assert bool(texted(store, FIRST)) is (policy == "resend")
