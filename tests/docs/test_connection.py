from __future__ import annotations

import json

import pytest
from support.pages import ROOT

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.hooks.sms import SmsHook

PAGE = ROOT / "docs" / "connection.md"
WRONG = [
    {"host": None},
    {"password": None},
    {"login": "client", "password": None},
    {"schema": "v1"},
    {"host": "http://rest.example.com/v1"},
    {"extra": {"allow_http": "maybe"}},
    {"extra": {"timeout": 0}},
    {"extra": {"verify": False}},
    {"extra": {"billing": "free"}},
    {"extra": {"timeout": 86401}},
    {"extra": {"verify": "/etc/nope.pem"}},
    {"password": "Bearer THE-TOKEN"},
    {"host": "ftp://rest.example.com/v1"},
    {"host": "https://rest.example.com/v1?key=1"},
    {"host": "https://"},
]
"""The wrong fields of each connection of the page's errors but the first, for which there is no connection."""


@pytest.fixture
def error(airflow_home, monkeypatch):
    """Return the error of a connection with these fields; None means that there is no connection."""

    def error(fields):
        monkeypatch.delenv("AIRFLOW_CONN_SMS_DEFAULT", raising=False)
        if fields is not None:
            given = {"conn_type": "sms", "host": "https://rest.example.com/v1", "password": "THE-TOKEN", **fields}
            monkeypatch.setenv("AIRFLOW_CONN_SMS_DEFAULT", json.dumps(given))
        with pytest.raises(InputError) as caught:
            SmsHook("sms_default").get_conn()
        return str(caught.value)

    return error


def test_each_error_of_the_page_is_one_of_the_code(error):
    """The errors of wrong connections are shown as the hook raises them, in the page's order, each with the name."""
    _, errors = PAGE.read_text().split("\n## Errors\n")
    shown = errors.split("```text\n")[1].split("```")[0].splitlines()
    assert [error(fields) for fields in (None, *WRONG)] == shown
