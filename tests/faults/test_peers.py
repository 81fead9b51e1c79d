from __future__ import annotations

import pytest
from support.faults import peers
from support.faults.peers import CHUNK, HTTP, LOOP, OURS, RECONCILING, TROUBLES, WAYS, Befallen, befall

PEOPLE = 6 * CHUNK


@pytest.fixture
def in_airflow(airflow_home, monkeypatch):
    """Send in this process's Airflow; a busy machine exceeds no timeout but that of the fault *late*."""

    def in_airflow(name, way):
        with monkeypatch.context() as patched:
            if name != "late":
                patched.setattr(peers, "TIMEOUT", 30)
            return befall(TROUBLES[name], way, PEOPLE)

    return in_airflow


@pytest.mark.parametrize("name", ["lost", "late", "again"])
def test_ours_texts_nobody_twice_where_others_do(in_airflow, name):
    """Under a fault that makes the others text people twice, ours texts nobody twice and loses nobody silently."""
    became = {way: in_airflow(name, way) for way in WAYS}

    assert min(became[LOOP].twice, became[HTTP].twice) > 0
    assert (became[OURS].twice, became[OURS].missing) == (0, 0)


@pytest.mark.parametrize("name", ["lost", "unread"])
def test_ours_names_who_is_unknown(in_airflow, name):
    """One answer that is lost leaves one request's people unknown, whether the service took it or not."""
    assert in_airflow(name, OURS).unknown == CHUNK


@pytest.mark.parametrize("name", ["lost", "unread"])
def test_only_ours_asks_the_balance(in_airflow, name):
    """It learns from the balance of each person whose response was lost: nobody is twice, missing or unknown."""
    assert in_airflow(name, RECONCILING) == Befallen(twice=0, missing=0, unknown=0, closed=CHUNK)
    assert in_airflow(name, HTTP).closed == 0


def test_a_request_that_was_lost_is_repeated_by_others(in_airflow):
    """Where the service took nothing the others lose nobody: the comparison is a fair one."""
    loop = in_airflow("unread", LOOP)

    assert (loop.twice, loop.missing) == (0, 0)


def test_a_trigger_that_posts_posts_again_when_its_triggerer_restarts(in_airflow):
    """A deferrable operator of another kind texts the people of a request twice."""
    assert in_airflow("restarts", HTTP) == Befallen(twice=CHUNK, missing=0, unknown=0)
