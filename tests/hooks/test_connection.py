from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import BaseHook, Connection

from airflow_provider_sms.exceptions import InputError, NoConnectionError
from airflow_provider_sms.get_provider_info import get_provider_info
from airflow_provider_sms.hooks.connection import ClientSettings, client_settings, stored_connection
from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.hooks.sql_source import SqlSource


def settings(**fields):
    extra = fields.pop("extra", {})
    fields = {"host": "https://rest.example.com/v1", "password": "TOKEN-TOKEN", **fields}
    return client_settings(Connection(conn_id="sms_default", conn_type="sms", **fields), extra)


@pytest.mark.parametrize(
    ("fields", "base_url"),
    [
        ({"host": "http://127.0.0.1:8025/v1"}, "http://127.0.0.1:8025/v1"),
        ({"host": "rest.example.com/v1"}, "https://rest.example.com/v1"),
        ({"host": "rest.example.com"}, "https://rest.example.com"),
        ({"host": "rest.example.com", "port": 8443}, "https://rest.example.com:8443"),
        ({"host": "127.0.0.1/v1", "schema": "http", "port": 80}, "http://127.0.0.1:80/v1"),
        ({"host": "[::1]/v1", "schema": "http", "port": 8025}, "http://[::1]:8025/v1"),
        ({"host": "https://[2001:db8::1]:444", "port": 8443}, "https://[2001:db8::1]:444"),
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
    as_json = settings(extra={"timeout": 12.5, "connect_timeout": 2, "verify": True, "billing": "prepaid"})
    assert given.model_dump(exclude={"conn_id"}) == as_json.model_dump(exclude={"conn_id"})


def test_the_form_has_the_fields_of_the_model():
    """Airflow reads the form from the metadata, without the model: both have the same names and defaults."""
    (declared,) = get_provider_info()["connection-types"]
    defaults = {name: field["schema"].get("default") for name, field in declared["conn-fields"].items()}
    optional = {name: each.default for name, each in ClientSettings.model_fields.items() if not each.is_required()}
    assert {**optional, "verify": None} == defaults


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"host": None}, "'sms_default' has no host"),
        ({"password": None}, "'sms_default' has no password: put the bearer token there"),
        ({"password": None, "login": "client"}, "'sms_default' has no password: put the API secret there"),
        ({"schema": "v1"}, "put the whole base URL"),
        ({"schema": "http"}, "'sms_default': host is an http:// address of another machine"),
        ({"extra": {"timeout": "soon"}}, "extra timeout must be a number of seconds above 0"),
        ({"extra": {"timeout": 0}}, "extra timeout must be a number of seconds above 0"),
        ({"extra": [1]}, "'sms_default': extra must be an object of JSON"),
        ({"extra": {"balance_url": 1}}, "'sms_default': extra balance_url must be text"),
        ({"extra": {"verify": False}}, "certificate checks cannot be switched off"),
        ({"extra": {"verify": "false"}}, "certificate checks cannot be switched off"),
        ({"extra": {"timeout": 181}}, "extra timeout must be a number of seconds above 0 and at most 180"),
        ({"extra": {"allow_http": "maybe"}}, "extra allow_http must be true or false"),
        ({"extra": {"billing": "free"}}, "extra billing must be one of auto, prepaid, postpaid"),
        ({"host": "ftp://rest.example.com"}, "'sms_default': host must begin with https:// or http://"),
        ({"extra": {"balance_url": "https://"}}, "'sms_default': balance_url is not a URL"),
        # One without both slashes would be taken for the name of a host, to which the token would go.
        *(
            ({"host": host}, "'sms_default': host is not a URL: write it like")
            for host in ("http:/evil.example", "https:/rest.example.com/v1", "http://:", "https:evil.example")
        ),
    ],
    ids=str,
)
def test_wrong_fields_are_named(fields, says):
    """The error names the connection and the field, and says what to do."""
    with pytest.raises(InputError, match=says):
        settings(**fields)


@pytest.mark.parametrize(
    "host",
    [
        "http://rest.example.com/v1",
        " HTTP://rest.example.com/v1",
        "http://10.0.0.1/v1",
        "http://0.0.0.0/v1",
        "http://localhost./v1",
        "http://localhost.example.com/v1",
        "http://127.0.0.1.example.com/v1",
        "http://127.1/v1",
        "http://2130706433/v1",
        "http://[fe80::1]/v1",
    ],
)
def test_http_to_another_machine_is_refused(host):
    """The token would go there unencrypted; a name that is not localhost counts as another machine's."""
    with pytest.raises(InputError, match="'sms_default': host is an http:// address of another machine"):
        settings(host=host)
    with pytest.raises(InputError, match="'sms_default': balance_url is an http:// address of another machine"):
        settings(extra={"balance_url": host})


@pytest.mark.parametrize("host", ["127.0.0.1:8025", "127.255.0.1", "localhost", "LOCALHOST:8025", "[::1]:8025"])
def test_http_to_this_machine_is_taken(host):
    """The sandbox and proxies on this machine need no certificate."""
    given = settings(host=f"http://{host}/v1", extra={"balance_url": f"http://{host}/api/v1"})
    assert (given.base_url, given.balance_url) == (f"http://{host}/v1", f"http://{host}/api/v1")


def test_secrets_are_not_in_the_repr():
    """Settings can be logged."""
    shown = repr(settings(login="client-id-1", password="secret-secret"))
    assert ("secret-secret" in shown, "client-id-1" in shown) == (False, False)


ALLOWED = [True, "true", "True"]


@pytest.mark.parametrize("allowed", [*ALLOWED, False, "false", "False", "", None])
def test_http_to_another_machine_is_taken_where_the_connection_says_so(allowed):
    """``allow_http`` holds for both URLs; its default is refused in each way that Airflow stores it."""
    fields = {"host": "http://sms.internal/v1", "extra": {"allow_http": allowed, "balance_url": "http://sms.internal"}}
    if allowed not in ALLOWED:
        with pytest.raises(InputError, match="http:// address"):
            settings(**fields)
        return
    given = settings(**fields)
    assert (given.base_url, given.balance_url) == ("http://sms.internal/v1", "http://sms.internal")


@pytest.mark.parametrize(
    ("fields", "is_same"),
    [
        ({"host": "HTTPS://REST.example.com/v1/"}, True),
        ({"extra": {"timeout": 5, "billing": "prepaid"}}, True),
        ({"password": "TOKEN-OTHER"}, False),
        ({"host": "https://rest.example.com/v2"}, False),
        ({"login": "CLIENT-ID"}, False),
    ],
    ids=str,
)
def test_an_account_is_its_address_and_its_token_or_client_id(fields, is_same):
    """How the address is written, how long is waited, and what an API secret is changed to, make no other account."""
    assert (settings(**fields).account == settings().account) is is_same
    known, renewed = (settings(login="CLIENT-ID", password=secret) for secret in ("OLD-SECRET", "NEW-SECRET"))
    assert known.account == renewed.account
    assert (known.token, known.client_id, known.client_secret) == (None, "CLIENT-ID", "OLD-SECRET")


def test_the_account_is_a_digest_without_a_secret():
    """The ledger keeps 16 bytes of a one-way digest, pinned since ledgers compare it, and nothing of the token."""
    assert settings().account == "e41fe33cab3fa3d3031b38394edb7cd6"


@pytest.fixture
def stored(airflow_home):
    """A connection in Airflow's database."""
    from airflow.models.connection import Connection as StoredConnection
    from airflow.utils.session import create_session

    made = StoredConnection(
        conn_id="stored-1", conn_type="sms", host="https://a.example/v1", password="p:@/%", extra='{"timeout": 9}'
    )
    with create_session() as session:
        session.add(made)
    yield "stored-1"
    with create_session() as session:
        session.query(StoredConnection).filter(StoredConnection.conn_id == "stored-1").delete()


def test_a_stored_connection_is_found_outside_a_task(stored):
    """In Airflow's database; None where there is no such connection."""
    assert (stored_connection(stored).host, stored_connection("nowhere")) == ("https://a.example/v1", None)


@pytest.mark.parametrize(
    "look_up",
    [
        lambda: SmsHook("nowhere").get_settings(),
        lambda: open_ledger("nowhere"),
        lambda: SqlSource("nowhere", "SELECT 1").open("suppress"),
    ],
    ids=["sms", "ledger", "source"],
)
def test_a_missing_connection_may_be_there_the_next_time(airflow_home, look_up):
    """Each of the three kinds says that the look-up may have failed, and is worth a retry; other mistakes are not."""
    with pytest.raises(
        NoConnectionError, match=r"'nowhere'.* its look-up may have failed.* Otherwise create"
    ) as raised:
        look_up()
    assert (raised.value.transient, InputError("wrong").transient) == (True, False)
