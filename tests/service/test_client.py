from __future__ import annotations

import json
import logging
from decimal import Decimal
from types import MappingProxyType

import pytest

from airflow_provider_sms.exceptions import InputError, RefusedError, UnknownOutcomeError
from airflow_provider_sms.messages.message import Message, Outgoing
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


@pytest.mark.parametrize("slash", ["", "/", "//"])
def test_a_trailing_slash_does_not_matter(serve, connect, wire, slash):
    """The same paths are called whether a base URL ends in a slash or not."""
    server = serve(wire.ok, wire.http(200, {"Balance": 1}))
    client = connect(server.url + slash, balance_url=f"http://127.0.0.1:{server.port}/api/v1{slash}")
    client.send_bulk([HI])
    client.get_balance()
    assert server.lines() == ["POST /v1/bulkmessages HTTP/1.1", "GET /api/v1/Balance HTTP/1.1"]


@pytest.mark.parametrize(
    "options", [{"SenderId": "Me", "TestMode": True}, MappingProxyType({"x": [1, None]}), None, {}]
)
def test_send_options_are_passed_through(serve, connect, wire, options):
    """They stand beside the messages as they were given, names and values unchecked; none are left out."""
    server = serve(wire.ok)
    client = connect(server.url)
    client.send_bulk([{"Content": "Hi", "Destination": "1"}], send_options=options)
    client.send_group("Hi", ["staff"], send_options=options)
    added = {"SendOptions": dict(options)} if options else {}
    assert [json.loads(body) for body in server.bodies()] == [
        {"Messages": [{"Content": "Hi", "Destination": "1"}], **added},
        {"Message": "Hi", "Groups": ["staff"], **added},
    ]


def test_columns_are_posted_as_messages_are(serve, connect, wire):
    """A send posts its messages as they are claimed, the same bytes that it would post of messages."""
    server = serve(wire.ok)
    client = connect(server.url)
    numbers, texts = [f"2782000000{n}" for n in range(3)], [f"{HI.content} {n}" for n in range(3)]
    client.send_bulk(Outgoing([bytes(16)] * 3, numbers, texts, [1] * 3))
    client.send_bulk(list(map(Message, texts, numbers)))
    columns, messages = server.bodies()
    assert columns == messages


def test_texts_of_a_subclass_are_texts(serve, connect, wire):
    """A text of pandas or of a template engine, which may be of a class of its own, goes out as the text it is."""
    server = serve(wire.ok)
    connect(server.url).send_bulk([HI, Message(type("Markup", (str,), {})("Two"), "27820000001")])
    assert [message["Content"] for message in json.loads(server.bodies()[0])["Messages"]] == [HI.content, "Two"]


def test_a_response_that_counts_more_than_was_posted_is_another_ones(serve, connect, wire):
    """What became of the request itself is unknown; a group may have any number of members."""
    server = serve(*[wire.http(200, {**wire.sent, "Messages": 2, "Parts": 2})] * 2)
    client = connect(server.url)
    with pytest.raises(UnknownOutcomeError, match="more messages than were posted"):
        client.send_bulk([HI])
    assert client.send_group("Hi all", ["staff"]).messages == 2


NO_LIST = "messages must be a list of messages, not "
COUNT = "one request takes 1 to 100 messages"
WRONG = "message {} must be a Message, or a mapping with Content, Destination and"
NO_JSON = "the request cannot be written as JSON"
WRONG_MESSAGES = [
    (HI, f"{NO_LIST}Message"),
    (None, f"{NO_LIST}NoneType"),
    (iter([]), f"{NO_LIST}list_iterator"),
    ("Hi", f"{NO_LIST}str"),
    (b"Hi", f"{NO_LIST}bytes"),
    ([], COUNT),
    ([HI] * 101, COUNT),
    (["Hi"], WRONG.format(1)),
    ([HI, None], WRONG.format(2)),
    *(([wrong], WRONG.format(1)) for wrong in ({}, {"Content": "Hi"}, {"content": "Hi", "destination": "27821234567"})),
    ([{"Content": "Hi", "Destination": "27821234567", "Customer": "c"}], WRONG.format(1)),
    ([{"Content": "Hi", "Destination": 27821234567}], WRONG.format(1)),
    ([{"Content": None, "Destination": "27821234567"}], WRONG.format(1)),
    ([{"Content": "Hi", "Destination": "1"}, Message("Hi", None)], WRONG.format(2)),
    ([HI, Message("Hi", 27821234567)], WRONG.format(2)),
    ([HI, Message(None, "27821234567")], WRONG.format(2)),
    ([Message("\ud83d", "27821234567")], NO_JSON),
]
WRONG_GROUPS = [(None, "staff"), ("Hi", []), ("Hi", ""), ("Hi", [""]), ("Hi", [1]), ("Hi", ["a", None])]


@pytest.mark.parametrize(
    ("send", "arguments", "options", "words"),
    [
        *(("send_bulk", [messages], None, words) for messages, words in WRONG_MESSAGES),
        ("send_bulk", [[HI]], "SenderId", "send_options must be a dict"),
        ("send_bulk", [[HI]], {"At": Decimal(1)}, NO_JSON),
        ("send_group", ["", ["staff"]], None, "message must be a text, and not empty"),
        *(("send_group", arguments, None, "message must|at least one group's name") for arguments in WRONG_GROUPS),
    ],
    ids=range(28),
)
def test_what_is_no_request_is_not_sent(serve, connect, wire, send, arguments, options, words):
    """What cannot be a request is the caller's error, with the place of the message, without its data."""
    server = serve(wire.ok)
    with pytest.raises(InputError, match=words) as caught:
        getattr(connect(server.url), send)(*arguments, send_options=options)
    assert server.requests == []
    assert "27821234567" not in str(caught.value)


NO_URL, MORE = "host is not a URL", "host must be a URL without user name, query and fragment"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"client_id": "m:e", "client_secret": "hunter2"}, "the client id has a colon"),
        *(
            ({"token": f"hunter2{more}"}, "the token has characters that no header may carry")
            for more in ("\n", " ", "\u00e9")
        ),
        *(
            ({"verify": path}, "extra verify must be true, or the path of a CA bundle")
            for path in ("/no/such/bundle.pem", "")
        ),
        ({"balance_url": "ftp://example.com"}, "balance_url must begin with"),
        ({"base_url": "ftp://example.com"}, "host must begin with https:// or http://, not with ftp://"),
        *(
            ({"base_url": url}, NO_URL)
            for url in ("", "  ", "https://", "https:///v1", "https://[::1", "https://example.com:x", "https://a b.com")
        ),
        ({"base_url": "https://me:hunter2@example.com"}, MORE),
        *(({"base_url": f"https://example.com/v1{more}"}, MORE) for more in ("?key=hunter2", "#a", "?", "#")),
    ],
    ids=str,
)
def test_a_wrong_setting_is_named(connect, options, words):
    """What is missing or wrong is named before anything is sent, and no secret is quoted."""
    with pytest.raises(InputError, match=words) as caught:
        connect(**{"url": "https://example.com", **options})
    assert "hunter2" not in str(caught.value)


HOSTS = ["REST.example.com:8443", "rest.example.com.", "_sms.internal", "-sms-.internal", "[fe80::1%25eth0]"]
HOSTS += ["b\u00fccher.example", f"{'a' * 63}.example.com"]


@pytest.mark.parametrize("host", HOSTS)
def test_any_host_that_a_request_could_go_to_is_taken(connect, host):
    """Names of a company's own network keep to no rule but the lengths of their parts."""
    assert repr(connect(f"https://{host}/v1/")) == f"SmsClient('https://{host}/v1')"


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
