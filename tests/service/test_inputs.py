import json
from decimal import Decimal
from types import MappingProxyType

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.messages.message import Message, Outgoing
from airflow_provider_sms.service.client import SmsClient
from airflow_provider_sms.service.inputs import checked_url

HI = Message("Hi Thandi, “ja” 😀", "27821234567")


@pytest.mark.parametrize("slash", ["", "/", "//"])
def test_a_trailing_slash_does_not_matter(serve, connect, wire, slash):
    """The same paths are called whether a base URL ends in a slash or not."""
    server = serve(wire.ok, wire.http(200, {"Balance": 1}))
    client = connect(server.url + slash, balance_url=f"http://127.0.0.1:{server.port}/api/v1{slash}")
    client.send_bulk([HI])
    client.get_balance()
    assert server.lines() == ["POST /v1/bulkmessages HTTP/1.1", "GET /api/v1/Balance HTTP/1.1"]


@pytest.mark.parametrize("options", [{"SenderId": "Me", "TestMode": True}, MappingProxyType({"x": [1, None]})])
def test_send_options_are_passed_through(serve, connect, wire, options):
    """Options stand beside the messages as they were given, names and values unchecked."""
    server = serve(wire.ok)
    client = connect(server.url)
    client.send_bulk([HI], send_options=options)
    client.send_group("Hi", ["staff"], send_options=options)
    actual = [json.loads(body)["SendOptions"] for body in server.bodies()]
    assert [dict(options)] * 2 == actual


@pytest.mark.parametrize("options", [None, {}])
def test_empty_send_options_are_left_out(serve, connect, wire, options):
    """Without options the body is the bare contract's."""
    server = serve(wire.ok)
    connect(server.url).send_group("Hi", ["staff"], send_options=options)
    assert server.bodies() == [b'{"Message":"Hi","Groups":["staff"]}']


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [HI] * 101,
        "Hi",
        b"Hi",
        ["Hi"],
        [None],
        [{}],
        [{"Content": "Hi"}],
        [{"content": "Hi", "destination": "27821234567"}],
        [{"Content": "Hi", "Destination": 27821234567}],
        [{"Content": None, "Destination": "27821234567"}],
        [{"Content": "Hi", "Destination": "27821234567", "Customer": "c"}],
        [Message("\ud83d", "27821234567")],
        [HI, Message("Hi", 27821234567)],
        [HI, Message(None, "27821234567")],
        [HI, None],
    ],
    ids=range(16),
)
def test_wrong_messages_are_not_sent(serve, connect, wire, messages):
    """What cannot be a request of the contract is the caller's error, without the data, and nothing is sent."""
    server = serve(wire.ok)
    with pytest.raises(InputError) as caught:
        connect(server.url).send_bulk(messages)
    assert server.requests == []
    assert "27821234567" not in str(caught.value)


def test_columns_are_posted_as_messages_are(serve, connect, wire):
    """A send posts its messages as they are claimed, the same bytes that it would post of messages."""
    server = serve(wire.ok)
    client = connect(server.url)
    numbers, texts = [f"2782000000{n}" for n in range(3)], [f"{HI.content} {n}" for n in range(3)]
    client.send_bulk(Outgoing([bytes(16)] * 3, numbers, texts, [1] * 3))
    client.send_bulk(list(map(Message, texts, numbers)))
    columns, messages = server.bodies()
    assert columns == messages


def test_columns_without_a_number_are_not_sent(serve, connect, wire):
    """A message to a group is none to a person."""
    server = serve(wire.ok)
    with pytest.raises(InputError):
        connect(server.url).send_bulk(Outgoing([b"k" * 16], [None], ["Hi"], [None]))
    assert server.requests == []


def test_the_message_that_is_wrong_is_named(connect):
    """The error says which message it is, counted from 1, among messages that are all alike as among mixed ones."""
    client = connect("http://127.0.0.1:1")
    for messages in ([HI, Message("Hi", 27821234567)], [{"Content": "Hi", "Destination": "1"}, Message("Hi", None)]):
        with pytest.raises(InputError, match="message 2: its values must be texts"):
            client.send_bulk(messages)


def test_texts_of_a_subclass_are_texts(serve, connect, wire):
    """A text of pandas or of a template engine, which may be of a class of its own, goes out as the text it is."""
    server = serve(wire.ok)
    connect(server.url).send_bulk([HI, Message(type("Markup", (str,), {})("Two"), "27820000001")])
    assert [message["Content"] for message in json.loads(server.bodies()[0])["Messages"]] == [HI.content, "Two"]


def test_options_that_are_no_json_are_not_sent(serve, connect, wire):
    """A value that JSON does not know is the caller's error."""
    server = serve(wire.ok)
    with pytest.raises(InputError, match="cannot be written as JSON"):
        connect(server.url).send_bulk([HI], send_options={"At": Decimal(1)})
    assert server.requests == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "host is missing"),
        ("  ", "host is missing"),
        ("ftp://example.com", "host must begin with https:// or http://, not with ftp://"),
        ("sms://example.com", "not with sms://"),
        ("https://", "host is not a URL"),
        ("https:///v1", "host is not a URL"),
        ("https://example.com:x", "host is not a URL"),
        ("https://exam ple.com", "host is not a URL"),
        ("https://[::1", "host is not a URL"),
        ("https://*.example.com/v1", "host is not a URL"),
        ("https://rest..example.com/v1", "host is not a URL"),
        ("https://.example.com", "host is not a URL"),
        (f"https://{'a' * 64}.example.com", "host is not a URL"),
        ("https://b\u00fccher..example", "host is not a URL"),
        ("https://me:hunter2@example.com", "host must be a URL without user name"),
        ("https://example.com/v1?key=hunter2", "without user name, query and fragment"),
        ("https://example.com/v1#a", "without user name, query and fragment"),
        ("https://example.com/v1?", "without user name, query and fragment"),
        ("https://example.com/v1#", "without user name, query and fragment"),
    ],
)
def test_a_wrong_base_url_is_named(url, words):
    """The error says which field is wrong, and quotes no password."""
    with pytest.raises(InputError, match=words) as caught:
        SmsClient(url, token="t")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "host",
    [
        "rest.example.com",
        "REST.example.com:8443",
        "rest.example.com.",
        "my_gateway.internal",
        "_sms.internal",
        "-sms-.internal",
        "sms",
        "localhost:8025",
        "127.0.0.1",
        "[::1]:8025",
        "[fe80::1%25eth0]",
        "b\u00fccher.example",
        "xn--bcher-kva.example",
        f"{'a' * 63}.example.com",
    ],
)
def test_any_host_that_a_request_could_go_to_is_taken(host):
    """Names of a company's own network keep to no rule but the lengths of their parts."""
    assert checked_url(f"https://{host}/v1/", "host") == f"https://{host}/v1"


def test_a_wrong_balance_url_is_named():
    """The error tells the two URLs apart."""
    with pytest.raises(InputError, match="balance_url must begin with"):
        SmsClient("https://example.com", token="t", balance_url="ftp://example.com")


def test_https_is_assumed():
    """A host without a scheme is reached by https."""
    with SmsClient("rest.example.com:8443/v1/", token="t") as client:
        assert repr(client) == "SmsClient('https://rest.example.com:8443/v1')"
