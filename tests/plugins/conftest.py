from __future__ import annotations

import pytest

from airflow_provider_sms.ledger.sqlite import open_sqlite


@pytest.fixture
def store(ledger_path):
    """The configured ledger, as tasks that send open it."""
    opened = open_sqlite(ledger_path)
    yield opened
    opened.close()


@pytest.fixture
def site(airflow_home, ledger_path, monkeypatch):
    """The pages, mounted as Airflow's web server mounts them, with its own users."""
    from support.plugins import mounted_pages

    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "vic:viewer,ed:user,ann:admin")
    with mounted_pages() as site:
        yield site


@pytest.fixture
def dag_rows(airflow_home):
    """Put DAGs into Airflow's database, each with its team or None, and remove them afterwards."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    added = []

    def add(teams):
        with create_session() as session:
            for team in dict.fromkeys(teams.values()):
                bundle = DagBundleModel(name=f"bundle of {team}")
                if team is not None:
                    from airflow.models.team import Team

                    bundle.teams.append(Team(name=team))
                    added.append((Team, team))
                session.add(bundle)
                added.append((DagBundleModel, bundle.name))
            session.flush()
            for dag_id, team in teams.items():
                session.add(DagModel(dag_id=dag_id, bundle_name=f"bundle of {team}", is_stale=False))
                added.append((DagModel, dag_id))

    yield add
    with create_session() as session:
        for model, key in reversed(added):
            session.delete(session.get(model, key))
            session.flush()


@pytest.fixture
def two_teams(airflow_home, dag_rows, monkeypatch):
    """A multi-team deployment of the teams *a* and *b*."""
    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    dag_rows({"of_a": "a", "of_b": "b", "of_nobody": None})


@pytest.fixture
def vic(site):
    """A viewer."""
    return site("vic")
