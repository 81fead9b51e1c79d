from __future__ import annotations

import os

import pytest

from airflow_provider_sms.testing.airflow_home import AirflowHome


def test_the_environment_comes_back(monkeypatch):
    """A home that is closed leaves no folder and no variable behind."""
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql:///real")
    before = dict(os.environ)
    home = AirflowHome()
    assert (os.environ["AIRFLOW_HOME"], "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" in os.environ) == (str(home.path), False)
    home.close()
    assert (before, home.path.exists()) == (dict(os.environ), False)


def test_the_database_of_another_airflow_is_refused(airflow_home):
    """Airflow reads its environment once: a home that it does not use gets no database, and no DAG runs elsewhere."""
    home = AirflowHome()
    try:
        with pytest.raises(RuntimeError, match="Airflow does not use the temporary metadata database"):
            home.require_database()
        assert list(home.path.glob("*.db")) == []
    finally:
        home.close()


def test_the_database_of_a_kept_airflow_is_used(airflow_home):
    """An Airflow whose database has its tables is used as it is."""
    home = AirflowHome(is_temporary=False)
    home.require_database()
    assert (home.path, os.environ["AIRFLOW_HOME"]) == (None, str(airflow_home))
