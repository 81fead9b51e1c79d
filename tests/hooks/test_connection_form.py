from __future__ import annotations

import warnings

import pytest
from support.versions import AIRFLOW

from airflow_provider_sms.get_provider_info import get_provider_info

(DECLARED,) = get_provider_info()["connection-types"]


@pytest.mark.slow
@pytest.mark.skipif(AIRFLOW < (3, 2), reason="Airflow takes the form from the metadata since 3.2")
def test_the_api_gives_the_form(airflow_home, monkeypatch):
    """The web page is told of every field by Airflow's own API."""
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "True")
    from airflow.api_fastapi.app import create_app

    with warnings.catch_warnings():
        # Airflow's and its libraries'.
        warnings.simplefilter("ignore")
        from fastapi.testclient import TestClient

        client = TestClient(create_app("core"))
        token = client.get("/auth/token").json()["access_token"]
        answer = client.get("/ui/connections/hook_meta", headers={"Authorization": f"Bearer {token}"})
    (form,) = [each for each in answer.json() if each["connection_type"] == "sms"]
    fields = {
        name: (field["schema"]["title"], field["description"], field["value"], field["schema"].get("enum"))
        for name, field in form["extra_fields"].items()
    }
    assert fields == {
        name: (
            field["label"],
            field["description"],
            field["schema"].get("default"),
            field["schema"].get("enum"),
        )
        for name, field in DECLARED["conn-fields"].items()
    }
    own = form["standard_fields"]
    behaviour = DECLARED["ui-field-behaviour"]
    assert {name: own[name]["title"] for name in behaviour["relabeling"]} == behaviour["relabeling"]
    assert (own["port"]["hidden"], own["url_schema"]["hidden"]) == (True, True)
    assert own["host"]["placeholder"] == behaviour["placeholders"]["host"]
