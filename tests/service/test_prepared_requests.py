"""What is prepared once per address holds for every request to it."""

import base64
import http.client

import pytest
import requests

from airflow_provider_sms import __version__
from airflow_provider_sms.exceptions import NotSentError
from airflow_provider_sms.messages.message import Message
from airflow_provider_sms.service.prepared_requests import prepared_route
from airflow_provider_sms.service.tracked_connections import Exchange, TrackedConnection, tracking

HI = [Message("Hi Thandi", "27821234567")]
LONG = [Message("Hi Thandi, and much more", "27821234567")]


def head(server, number):
    return server.requests[number].partition(b"\r\n\r\n")[0].decode().split("\r\n")


def test_every_request_has_exactly_these_headers(serve, connect, wire):
    """No header more, none less, none of an earlier request: the length is that of its own body."""
    server = serve(wire.ok, wire.ok, wire.ok, wire.http(200, {"Balance": 1}))
    client = connect(server.url)
    for messages in (HI, LONG, HI):
        client.send_bulk(messages)
    client.get_balance()
    common = {
        f"Host: 127.0.0.1:{server.port}",
        "Accept-Encoding: identity",
        f"User-Agent: airflow-provider-sms/{__version__}",
        "Content-Type: application/json",
        "Accept: application/json",
        "Authorization: Bearer secret-token",
    }
    for number, length in enumerate(map(len, server.bodies()[:3])):
        assert sorted([*common, f"Content-Length: {length}"]) == sorted(head(server, number)[1:])
    assert sorted(common) == sorted(head(server, 3)[1:])


def test_a_renewed_token_is_used_with_the_same_body(serve, connect, wire):
    """After a 401 the same bytes go out under the new token, once, and so do the next ones."""
    first, second = (wire.http(200, {"token": name}) for name in ("token-1", "token-2"))
    server = serve(first, wire.http(401, b""), second, wire.ok)
    client = connect(server.url, client_id="me", client_secret="hunter2")
    client.send_bulk(HI)
    client.send_bulk(HI)
    expected = ["Bearer token-1", "Bearer token-2", "Bearer token-2"]
    assert [server.headers(number)["authorization"] for number in (1, 3, 4)] == expected
    assert [server.bodies()[number] for number in (3, 4)] == [server.bodies()[1]] * 2
    assert len(server.requests) == 5


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("size", [1, 100], ids=["short", "long"])
def test_a_request_is_written_once(serve, connect, wire, request, monkeypatch, scheme, size):
    """Headers and body go out together, in as many pieces as 16 KB need, and arrive once and whole."""
    bundle, context = request.getfixturevalue("certificate")
    server = serve(wire.ok, tls=context if scheme == "https" else None)
    written = []
    original = http.client.HTTPConnection.send

    def send(connection, data):
        written.append(bytes(data))
        original(connection, data)

    monkeypatch.setattr(http.client.HTTPConnection, "send", send)
    connect(server.url, verify=bundle).send_bulk([Message("x" * 400, "27821234567")] * size)
    assert server.requests == [b"".join(written)]
    assert len(written) == -(-len(server.requests[0]) // (16 * 1024))


def test_whatever_is_written_is_noted(serve, wire, clock):
    """A byte that goes out by another way than a whole request counts as one of it: it may have been read."""
    server = serve(wire.ok)
    exchange = Exchange(clock.now + 10, clock)
    connection = TrackedConnection("127.0.0.1", server.port)
    with tracking(exchange):
        connection.connect()
        assert not exchange.written
        connection.send(b"P")
    connection.close()
    assert exchange.written


@pytest.mark.parametrize("names", ["127.0.0.1", "example.com,127.0.0.1", "*"])
def test_no_proxy_is_honoured(serve, connect, wire, monkeypatch, names):
    """What the environment exempts from its proxy is reached directly, each time."""
    server, proxy = serve(wire.ok), serve(wire.ok)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("no_proxy", names)
    client = connect(server.url)
    client.send_bulk(HI)
    client.send_bulk(HI)
    assert (len(server.requests), proxy.requests) == (2, [])


def test_a_proxy_gets_its_own_credentials_each_time(serve, connect, wire, monkeypatch):
    """User and password of the environment's proxy are its own header, beside the service's token."""
    proxy = serve(wire.ok)
    monkeypatch.setenv("http_proxy", f"http://me:hunter2@127.0.0.1:{proxy.port}")
    client = connect("http://sms.invalid/v1")
    for number in range(2):
        client.send_bulk(HI)
        headers = proxy.headers(number)
        assert headers["proxy-authorization"] == "Basic " + base64.b64encode(b"me:hunter2").decode()
        assert headers["authorization"] == "Bearer secret-token"


def test_the_environment_is_read_with_the_first_request(serve, connect, wire, monkeypatch):
    """A proxy that appears later is that of later clients: requests of one client all go one way."""
    server, proxy = serve(wire.ok), serve(wire.ok)
    client = connect(server.url)
    client.send_bulk(HI)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    client.send_bulk(HI)
    assert server.lines() == ["POST /v1/bulkmessages HTTP/1.1"] * 2
    assert proxy.requests == []
    connect(server.url).send_bulk(HI)
    assert (len(server.requests), len(proxy.requests)) == (2, 1)


def test_netrc_is_not_read_for_any_request(serve, connect, wire, tmp_path, monkeypatch):
    """Neither the first nor a later request, with a body or without, takes a token out of ~/.netrc."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server = serve(wire.ok, wire.ok, wire.http(200, {"Balance": 1}))
    client = connect(server.url)
    client.send_bulk(HI)
    client.send_bulk(HI)
    client.get_balance()
    assert [server.headers(number)["authorization"] for number in range(3)] == ["Bearer secret-token"] * 3


def test_a_route_holds_no_authorization(tmp_path, monkeypatch):
    """What is kept between requests has nobody's password, not even until a token takes its place."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with requests.Session() as session:
        route = prepared_route(session, "POST", "http://127.0.0.1/v1/bulkmessages", timeouts=(1.0, 1.0), verify=True)
    assert "authorization" not in {name.lower() for name in route.headers}


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_verification_that_is_off_stays_off(serve, connect, wire, certificate, monkeypatch):
    """The environment's bundle is for those who verify: it turns nothing on again."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/no/such/bundle.pem")
    server = serve(wire.ok, tls=certificate[1])
    client = connect(server.url, verify=False)
    assert [client.send_bulk(HI).messages for _ in range(2)] == [1, 1]


def test_verification_that_is_on_stays_on(serve, connect, wire, certificate):
    """A request that failed to be verified makes no later one go out."""
    server = serve(wire.ok, tls=certificate[1])
    client = connect(server.url)
    for _ in range(2):
        with pytest.raises(NotSentError, match="CERTIFICATE_VERIFY_FAILED"):
            client.send_bulk(HI)
    assert server.requests == []


def test_a_closed_client_opens_new_connections(serve, connect, wire):
    """Closing gives up connections, not the client."""
    server = serve(wire.ok)
    client = connect(server.url)
    client.send_bulk(HI)
    client.close()
    assert client.send_bulk(HI).messages == 1
    assert server.connections == 2
