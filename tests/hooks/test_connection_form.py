from __future__ import annotations

import sys
import warnings
from types import SimpleNamespace

import pytest
from support.versions import AIRFLOW

from airflow_provider_sms.get_provider_info import get_provider_info
from airflow_provider_sms.hooks.sms import SmsHook

(DECLARED,) = get_provider_info()["connection-types"]


@pytest.fixture
def form_libraries(monkeypatch):
    """Stand-ins for the libraries of Airflow's older forms, which newer ones do not bring: they keep what they get."""

    def string_field(label, **settings):
        return {"label": label, **settings}

    stand_ins = {
        "flask_appbuilder": {},
        "flask_appbuilder.fieldwidgets": {"BS3TextFieldWidget": lambda: "a line of text"},
        "flask_babel": {"lazy_gettext": lambda words: words},
        "wtforms": {"StringField": string_field},
        "wtforms.validators": {"Optional": lambda: "optional", "any_of": lambda values: values},
    }
    for name, contents in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**contents))


def _as_text(value):
    return None if value is None else str(value)


def test_the_hooks_fields_are_those_of_the_metadata(form_libraries):
    """Airflow before 3.2 asks the hook: it names the same fields, with the same labels, words, defaults and choices."""
    declared = {
        name: {
            "label": field["label"],
            "description": field["description"],
            "default": _as_text(field["schema"].get("default")),
            "validators": ["optional", *([field["schema"]["enum"]] if "enum" in field["schema"] else [])],
            "widget": "a line of text",
        }
        for name, field in DECLARED["conn-fields"].items()
    }
    assert SmsHook.get_connection_form_widgets() == declared


def test_the_hooks_behaviour_is_that_of_the_metadata():
    """The same fields of Airflow's own are hidden, named anew and explained."""
    declared = DECLARED["ui-field-behaviour"]
    assert SmsHook.get_ui_field_behaviour() == {
        "hidden_fields": declared["hidden-fields"],
        "relabeling": declared["relabeling"],
        "placeholders": declared["placeholders"],
    }


@pytest.mark.slow
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
    # Before 3.2 every field is a line of text.
    default_of = _as_text if AIRFLOW < (3, 2) else lambda value: value
    assert fields == {
        name: (
            field["label"],
            field["description"],
            default_of(field["schema"].get("default")),
            field["schema"].get("enum"),
        )
        for name, field in DECLARED["conn-fields"].items()
    }
    own = form["standard_fields"]
    behaviour = DECLARED["ui-field-behaviour"]
    assert {name: own[name]["title"] for name in behaviour["relabeling"]} == behaviour["relabeling"]
    assert (own["port"]["hidden"], own["url_schema"]["hidden"]) == (True, True)
    assert own["host"]["placeholder"] == behaviour["placeholders"]["host"]
