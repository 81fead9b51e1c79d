from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import BaseHook, Connection

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.hooks.connection import client_settings


def settings(**fields):
    extra = fields.pop("extra", {})
    fields = {"host": "https://rest.example.com/v1", "password": "TOKEN-TOKEN", **fields}
    return client_settings(Connection(conn_id="sms_default", conn_type="sms", **fields), extra)


@pytest.mark.parametrize(
    ("fields", "base_url"),
    [
        ({"host": "https://rest.example.com/v1"}, "https://rest.example.com/v1"),
        ({"host": "http://127.0.0.1:8025/v1"}, "http://127.0.0.1:8025/v1"),
        ({"host": "rest.example.com/v1"}, "https://rest.example.com/v1"),
        ({"host": "rest.example.com"}, "https://rest.example.com"),
        ({"host": "rest.example.com", "port": 8443}, "https://rest.example.com:8443"),
        ({"host": "rest.example.com/v1", "schema": "http", "port": 80}, "http://rest.example.com:80/v1"),
    ],
    ids=str,
)
def test_the_base_url_is_completed(fields, base_url):
    """Without a scheme it is https; port and scheme may stand in their own fields."""
    assert settings(**fields).base_url == base_url


def test_a_uri_connection_says_the_same(monkeypatch):
    """The URI form, whose extras are text, gives the same settings as the JSON form."""
    service = "sms://:TOKEN-TOKEN@https%3A%2F%2Frest.example.com%2Fv1"
    uri = f"{service}?timeout=12.5&connect_timeout=2&verify=true&billing=prepaid"
    monkeypatch.setenv("AIRFLOW_CONN_FROM_URI", uri)
    connection = BaseHook.get_connection("from_uri")
    given = client_settings(connection, connection.extra_dejson)
    assert given == settings(extra={"timeout": 12.5, "connect_timeout": 2, "verify": True, "billing": "prepaid"})


def test_defaults():
    """What is left out has the documented default."""
    given = settings()
    assert (given.timeout, given.connect_timeout, given.verify, given.billing, given.balance_url) == (
        30.0,
        5.0,
        True,
        "auto",
        None,
    )


def test_a_login_makes_the_password_an_api_secret():
    """With a client id, a token is fetched."""
    given = settings(login="client", password="secret-secret")
    assert (given.token, given.client_id, given.client_secret) == (None, "client", "secret-secret")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"host": None}, "'sms_default' has no host"),
        ({"password": None}, "'sms_default' has no password: put the bearer token there"),
        ({"password": None, "login": "client"}, "'sms_default' has no password: put the API secret there"),
        ({"schema": "v1"}, "put the whole base URL"),
        ({"extra": {"timeout": "soon"}}, "'timeout' must be a number of seconds above 0"),
        ({"extra": {"timeout": 0}}, "'timeout' must be a number of seconds above 0"),
        ({"extra": {"connect_timeout": -1}}, "'connect_timeout' must be a number of seconds above 0"),
        ({"extra": {"verify": False}}, "certificate checks cannot be switched off"),
        ({"extra": {"verify": "false"}}, "certificate checks cannot be switched off"),
        ({"extra": {"billing": "free"}}, "'billing' must be one of auto, prepaid, postpaid"),
    ],
    ids=str,
)
def test_wrong_fields_are_named(fields, says):
    """The error names the connection and the field, and says what to do."""
    with pytest.raises(InputError, match=says):
        settings(**fields)


def test_secrets_are_not_in_the_repr():
    """Settings can be logged."""
    shown = repr(settings(login="client-id-1", password="secret-secret"))
    assert ("secret-secret" in shown, "client-id-1" in shown) == (False, False)
