import logging
from decimal import Decimal

import pytest

from airflow_provider_sms.exceptions import InputError, RefusedError, UnknownOutcomeError
from airflow_provider_sms.messages.message import Message
from airflow_provider_sms.service.echoes import WITHHELD

HI = Message("Hi Thandi, “ja” 😀", "27821234567")


def test_each_request_is_as_the_contract_says(serve, connect, wire):
    """Path and every byte of the body are the contract's: messages, one text to groups, and Balance with a capital."""
    server = serve(wire.ok, wire.ok, wire.http(200, {"Balance": 1000000}))
    client = connect(server.url)
    mapping = {"Content": "Two", "Destination": "27820000001", "CustomerId": "c-2"}
    assert client.send_bulk([HI, mapping]).raw == wire.sent
    assert client.send_group("Hi all", ("staff", "pupils")).cost == Decimal("1.5")
    assert client.get_balance().post_paid
    assert server.lines() == [
        "POST /v1/bulkmessages HTTP/1.1",
        "POST /v1/groupmessages HTTP/1.1",
        "GET /v1/Balance HTTP/1.1",
    ]
    bulk = (
        '{"Messages":[{"Content":"Hi Thandi, “ja” 😀","Destination":"27821234567"},'
        '{"Content":"Two","Destination":"27820000001","CustomerId":"c-2"}]}'
    )
    assert server.bodies() == [bulk.encode(), b'{"Message":"Hi all","Groups":["staff","pupils"]}', b""]
    assert not connect(server.url, billing="prepaid").get_balance().post_paid


def test_a_response_that_counts_more_than_was_posted_is_another_ones(serve, connect, wire):
    """What became of the request itself is unknown; a group may have any number of members."""
    server = serve(*[wire.http(200, {**wire.sent, "Messages": 2, "Parts": 2})] * 2)
    client = connect(server.url)
    with pytest.raises(UnknownOutcomeError, match="more messages than were posted"):
        client.send_bulk([HI])
    assert client.send_group("Hi all", ["staff"]).messages == 2


@pytest.mark.parametrize(
    ("message", "groups"),
    [("", ["staff"]), (None, ["staff"]), ("Hi", []), ("Hi", ""), ("Hi", [""]), ("Hi", [1]), ("Hi", ["a", None])],
)
def test_wrong_group_sends_are_not_sent(serve, connect, wire, message, groups):
    """A group send needs a text and a name."""
    server = serve(wire.ok)
    with pytest.raises(InputError):
        connect(server.url).send_group(message, groups)
    assert server.requests == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"client_id": "m:e", "client_secret": "hunter2"}, "the client id has a colon"),
        ({"token": "hunter2\n"}, "the token has characters"),
        ({"token": "hunter2 "}, "the token has characters"),
        ({"token": "hunter2\u00e9"}, "the token has characters"),
        ({"token": "t", "verify": "/no/such/bundle.pem"}, "extra verify must be true, or the path of a CA bundle"),
        ({"token": "t", "verify": ""}, "extra verify must be true, or the path of a CA bundle"),
        ({"token": "t", "balance_url": "ftp://example.com"}, "balance_url must begin with"),
    ],
)
def test_a_wrong_setting_is_named(connect, options, words):
    """What is missing or wrong is named before anything is sent, and no secret is quoted."""
    with pytest.raises(InputError, match=words) as caught:
        connect("https://example.com", **options)
    assert "hunter2" not in str(caught.value)


def test_the_longest_call_is_told(connect):
    """Callers can compute a deadline: one request with a token, up to four with credentials."""
    timeouts = {"timeout": 10, "connect_timeout": 1}
    assert connect("https://example.com", **timeouts).longest_call == 11.0
    assert connect("https://example.com", client_id="i", client_secret="s", **timeouts).longest_call == 44.0


def test_a_refusal_hides_what_was_sent(serve, connect, wire):
    """The service may repeat token, text and number; the error does not."""
    words = f"secret-token may not send {HI.content} to {HI.destination}"
    server = serve(wire.http(403, {"errorCode": "InsufficientCredits", "errorMessage": words}))
    client = connect(server.url)
    for send in (lambda: client.send_bulk([HI]), lambda: client.send_group(HI.content, ["staff"])):
        with pytest.raises(RefusedError) as caught:
            send()
        assert caught.value.code == "InsufficientCredits"
        assert str(caught.value).endswith(f": {WITHHELD}")


def test_nothing_personal_is_logged(serve, connect, wire, caplog):
    """Even at the finest level no log line of any library holds token, text or number."""
    caplog.set_level(logging.DEBUG)
    server = serve(wire.ok, wire.http(500, b"no"), wire.reset)
    client = connect(server.url)
    client.send_bulk([HI])
    for _ in range(2):
        with pytest.raises(UnknownOutcomeError):
            client.send_bulk([HI])
    assert caplog.text
    for word in ("secret-token", "Thandi", "27821234567"):
        assert word not in caplog.text


def test_nothing_secret_is_in_a_repr(serve, connect):
    """The client and what it is made of show no token."""
    client = connect("https://example.com")
    token = client._tokens.current()
    assert "secret-token" not in repr([client, client._tokens, token, client._transport])
