from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from uuid import uuid4

import pytest

from benchmarks.bench import Bench
from benchmarks.cases import competing as case
from benchmarks.processes import WrongError
from benchmarks.sizes import QUICK

SETTING = case.Setting("no latency", 0.0, 0.001, 1.0)


@pytest.fixture
def bench(tmp_path, postgres_server, monkeypatch):
    """The environment of a case with two tiny senders, on the server of the tests."""
    with ExitStack() as stack:
        made = Bench(replace(QUICK, senders=250, most_senders=2), tmp_path, stack, lambda _: None)
        made.postgres = postgres_server.set(drivername="postgresql+psycopg")
        monkeypatch.setattr(made, "name", lambda kind: f"{kind}_{uuid4().hex}")
        yield made


@pytest.mark.slow
def test_senders_of_one_campaign_are_compared_with_a_campaign_each(bench, monkeypatch):
    """Two processes send their own people at once, and the figure is the ratio of both ways."""
    monkeypatch.setattr(case, "SETTINGS", (SETTING,))
    alone, both = case.senders(bench)

    assert alone.number == 1.0
    assert both.number == pytest.approx(both.details["one"][0]["rate"] / both.details["own"][0]["rate"])
    for sent in both.details["one"] + both.details["own"]:
        assert sent["connections"] >= 2
        assert sent["commits"] > 0
        assert 0 < sent["locked"] < sent["committing"] < 1


@pytest.mark.slow
def test_senders_that_text_somebody_twice_have_no_figure(bench, monkeypatch):
    """The service counts the people: fewer than there are rows, and the case is wrong."""
    monkeypatch.setattr(case, "SETTINGS", (SETTING,))
    monkeypatch.setattr(bench.service, "distinct", lambda: 499)

    with pytest.raises(WrongError, match="250 messages to 499 people"):
        case.senders(bench)


@pytest.mark.slow
def test_a_sender_that_fails_has_no_figure(bench, monkeypatch):
    """A sender whose ledger cannot be opened ends the case, with the words of its process."""
    monkeypatch.setattr(case, "new_database", lambda server, name: server.set(database=f"no_{name}"))
    monkeypatch.setattr(case, "with_commit_delay", lambda *_: None)

    with pytest.raises(WrongError, match="The ledger cannot be opened"):
        case.senders(bench)
