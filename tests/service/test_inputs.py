import json
from decimal import Decimal
from types import MappingProxyType

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.messages.message import Message, Outgoing

HI = Message("Hi Thandi, “ja” 😀", "27821234567")


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


NO_LIST = "messages must be a list of messages, not "
COUNT = "one request takes 1 to 100 messages"
WRONG = "message {} must be a Message, or a mapping with Content, Destination and"


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (HI, f"{NO_LIST}Message"),
        (None, f"{NO_LIST}NoneType"),
        (iter([]), f"{NO_LIST}list_iterator"),
        ("Hi", f"{NO_LIST}str"),
        (b"Hi", f"{NO_LIST}bytes"),
        ([], COUNT),
        ([HI] * 101, COUNT),
        (["Hi"], WRONG.format(1)),
        ([HI, None], WRONG.format(2)),
        *(
            ([wrong], WRONG.format(1))
            for wrong in ({}, {"Content": "Hi"}, {"content": "Hi", "destination": "27821234567"})
        ),
        ([{"Content": "Hi", "Destination": "27821234567", "Customer": "c"}], WRONG.format(1)),
        ([{"Content": "Hi", "Destination": 27821234567}], WRONG.format(1)),
        ([{"Content": None, "Destination": "27821234567"}], WRONG.format(1)),
        ([{"Content": "Hi", "Destination": "1"}, Message("Hi", None)], WRONG.format(2)),
        ([HI, Message("Hi", 27821234567)], WRONG.format(2)),
        ([HI, Message(None, "27821234567")], WRONG.format(2)),
        ([Message("\ud83d", "27821234567")], "the request cannot be written as JSON"),
    ],
    ids=range(19),
)
def test_wrong_messages_are_not_sent(serve, connect, wire, messages, words):
    """What cannot be a request is the caller's error, with the place of the message, without its data."""
    server = serve(wire.ok)
    with pytest.raises(InputError, match=words) as caught:
        connect(server.url).send_bulk(messages)
    assert server.requests == []
    assert "27821234567" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [("SenderId", "send_options must be a dict"), ({"At": Decimal(1)}, "cannot be written as JSON")],
)
def test_wrong_options_are_not_sent(serve, connect, wire, options, words):
    """What is no object of JSON is named before anything is sent."""
    server = serve(wire.ok)
    with pytest.raises(InputError, match=words):
        connect(server.url).send_bulk([HI], send_options=options)
    assert server.requests == []


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


NO_URL, MORE = "host is not a URL", "host must be a URL without user name, query and fragment"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://example.com", "host must begin with https:// or http://, not with ftp://"),
        ("sms://example.com", "not with sms://"),
        *((url, NO_URL) for url in ("", "  ", "https://", "https:///v1", "https://[::1")),
        *((f"https://{host}", NO_URL) for host in ("example.com:x", "exam ple.com")),
        ("https://me:hunter2@example.com", MORE),
        *((f"https://example.com/v1{more}", MORE) for more in ("?key=hunter2", "#a", "?", "#")),
    ],
)
def test_a_wrong_base_url_is_named(connect, url, words):
    """The error says which field is wrong, and quotes no password."""
    with pytest.raises(InputError, match=words) as caught:
        connect(url)
    assert "hunter2" not in str(caught.value)


HOSTS = [
    "rest.example.com",
    "REST.example.com:8443",
    "rest.example.com.",
    "my_gateway.internal",
    "_sms.internal",
    "sms",
]
HOSTS += ["-sms-.internal", "localhost:8025", "127.0.0.1", "[::1]:8025", "[fe80::1%25eth0]", "b\u00fccher.example"]
HOSTS += ["xn--bcher-kva.example", f"{'a' * 63}.example.com"]


@pytest.mark.parametrize("host", HOSTS)
def test_any_host_that_a_request_could_go_to_is_taken(connect, host):
    """Names of a company's own network keep to no rule but the lengths of their parts."""
    assert repr(connect(f"https://{host}/v1/")) == f"SmsClient('https://{host}/v1')"
