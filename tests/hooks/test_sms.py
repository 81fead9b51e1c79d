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


ROWS = [{"destination": "27821234567", "name": "Thandeka"}]


@pytest.mark.parametrize(
    ("conn_id", "fields", "works", "says"),
    [
        ("sms_default", {}, True, "Connected: the balance is 100000"),
        ("sms_default", {"extra": {"billing": "postpaid"}}, True, "Connected: a post-paid account"),
        ("sms_default", {"password": "wrong-token"}, False, "401"),
        ("sms_default", {"password": ""}, False, "no password"),
        ("sms_default", {"host": "http://127.0.0.1:1"}, False, "not sent"),
        ("sms_default", {"host": "not a url"}, False, "not a URL"),
        ("nowhere", {}, False, "'nowhere' does not exist"),
        # A template rendered it to rows, as text or as they are.
        *((rows, {}, False, "does not exist") for rows in (str(ROWS), ROWS)),
    ],
    ids=str,
)
def test_the_test_button_says_what_is_wrong(sms_default, conn_id, fields, works, says):
    """Testing a connection, also one that is not there, is free, never raises, and shows no token and no row."""
    sms_default(**fields)
    tested, words = SmsHook(conn_id).test_connection()
    assert (tested, says in words) == (works, True)
    assert [secret for secret in ("wrong-token", "27821234567", "Thandeka") if secret in words] == []


def test_a_base_url_without_its_version_is_named(sms_default, sandbox):
    """The error of a 404 has the address, and its likely cause."""
    base = sandbox.base_url.removesuffix("/v1")
    sms_default(host=base)
    hook, one = SmsHook(), [Message("Hi", "27820000001")]
    for call, path in ((hook.get_balance, "Balance"), (lambda: hook.send_bulk(one), "bulkmessages")):
        with pytest.raises(RefusedError, match=f"There is nothing at {base}/{path}: .* may lack its version segment"):
            call()
