from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import RefusedError
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.messages.message import Message


def test_a_bulk_send_is_one_request(sms_default, sandbox):
    """Messages may be objects or mappings; the answer is exact."""
    answer = SmsHook().send_bulk(
        [Message("Hi", "27820000001"), {"Content": "Ho", "Destination": "27820000002"}],
        send_options={"SenderId": "ACME"},
    )
    (request,) = sandbox.state.requests
    assert (answer.messages, answer.event_id, request.send_options) == (
        2,
        request.response["EventId"],
        {"SenderId": "ACME"},
    )


@pytest.mark.parametrize("groups", ["staff", ["staff"], ("staff",)])
def test_a_group_send_is_one_request(sms_default, sandbox, groups):
    """A group is named as in the operator: the text first, then one name or several."""
    answer = SmsHook().send_group("Hi", groups)
    assert answer.messages == len(sandbox.state.accepted_messages) > 0
    SmsHook().send_group(message="Hi", groups=groups)
    assert [request.status for request in sandbox.state.requests] == [200, 200]


@pytest.mark.parametrize("billing", ["auto", "postpaid"])
def test_a_post_paid_account_is_recognised(sms_default, sandbox, billing):
    """A balance of exactly 1000000 is a post-paid account's."""
    sms_default(extra={"billing": billing})
    sandbox.state.post_paid = True
    assert SmsHook().get_balance().post_paid


def test_the_balance_may_be_elsewhere(sms_default, sandbox):
    """Where the contract's two base paths differ, the balance has its own."""
    sms_default(extra={"balance_url": sandbox.base_url.replace("/v1", "/api/v1")})
    SmsHook().get_balance()
    assert [r.path for r in sandbox.state.requests] == ["/api/v1/Balance"]


def test_credentials_fetch_a_token(airflow_home, monkeypatch):
    """With a client id and secret, no token needs to be stored."""
    from airflow_provider_sms.sandbox.config import SandboxConfig
    from airflow_provider_sms.sandbox.server import running_sandbox

    config = SandboxConfig(token=None, client_id="client", client_secret="secret-secret")
    with running_sandbox(config) as sandbox:
        host = sandbox.base_url.replace("/", "%2F").replace(":", "%3A")
        monkeypatch.setenv("AIRFLOW_CONN_SMS_DEFAULT", f"sms://client:secret-secret@{host}")
        assert SmsHook().get_balance().amount == 1000


@pytest.mark.parametrize(
    ("fields", "works", "says"),
    [
        ({}, True, "Connected: the balance is 100000"),
        ({"password": "wrong-token"}, False, "401"),
        ({"password": ""}, False, "no password"),
        ({"host": "http://127.0.0.1:1"}, False, "not sent"),
        ({"host": "not a url"}, False, "not a URL"),
        (None, False, "'nowhere' does not exist"),
    ],
    ids=str,
)
def test_the_test_button_says_what_is_wrong(sms_default, fields, works, says):
    """Testing a connection, also one that is not there, is free, never raises, and shows no token."""
    sms_default(**fields or {})
    tested, words = SmsHook("sms_default" if fields is not None else "nowhere").test_connection()
    assert (tested, says in words, "wrong-token" in words) == (works, True, False)


ROWS = [{"destination": "27821234567", "name": "Thandeka"}]


@pytest.mark.parametrize("conn_id", [str(ROWS), ROWS], ids=["text", "native"])
def test_rows_in_place_of_an_id_are_not_quoted(airflow_home, conn_id):
    """An id that a template rendered to rows is masked and cut."""
    _, words = SmsHook(conn_id).test_connection()
    assert "27821234567" not in words
    assert "Thandeka" not in words


def test_a_base_url_without_its_version_is_named(sms_default, sandbox):
    """The error of a 404 has the address, and its likely cause."""
    base = sandbox.base_url.removesuffix("/v1")
    sms_default(host=base)
    for call, path in ((lambda: SmsHook().get_balance(), "Balance"), (send_one, "bulkmessages")):
        with pytest.raises(RefusedError, match=f"There is nothing at {base}/{path}: .* may lack its version segment"):
            call()


def send_one():
    return SmsHook().send_bulk([Message("Hi", "27820000001")])
