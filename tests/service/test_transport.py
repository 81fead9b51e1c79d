from __future__ import annotations

import base64
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_provider_sms import __version__
from airflow_provider_sms.exceptions import NotSentError, RefusedError, ThrottledError, UnknownOutcomeError
from airflow_provider_sms.messages.message import Message
from airflow_provider_sms.service.connections import MAX_RESPONSE_BYTES
from airflow_provider_sms.service.transport import Transport

HI = [Message("Hi Thandi", "27821234567")]


def nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (nobody_listens(), "Connection refused"),
        ("http://no-such-host.invalid", "not sent: "),
        ("https://no-such-host.invalid", "not sent: "),
    ],
    ids=["nobody listens", "no such host", "no such host, TLS"],
)
def test_what_cannot_be_connected_to_was_not_sent(connect, url, reason):
    """A refused port and a name that does not resolve: no byte was written."""
    with pytest.raises(NotSentError, match=reason) as caught:
        connect(url).send_bulk(HI)
    assert not caught.value.may_have_been_sent
    assert caught.value.transient


def test_a_connect_timeout_was_not_sent(connect):
    """A host that does not answer the connection got nothing."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for filler in (first, second):
            filler.settimeout(0)
            filler.connect_ex(listener.getsockname())
        with pytest.raises(NotSentError, match="timed out"):
            connect(f"http://127.0.0.1:{listener.getsockname()[1]}", connect_timeout=0.1).send_bulk(HI)


def test_a_failed_handshake_was_not_sent(serve, connect, wire):
    """A server that does not speak TLS got a handshake and no request."""
    server = serve(wire.ok, greeting=b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(NotSentError, match=r"(?i)wrong.version.number|record layer"):
        connect(server.url.replace("http:", "https:")).send_bulk(HI)


def test_a_ca_bundle_is_used(serve, connect, wire, certificate, monkeypatch):
    """A bundle that is given counts, whatever the environment names."""
    server = serve(wire.ok, tls=certificate[1])
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", ssl.get_default_verify_paths().openssl_cafile)
    client = connect(server.url, verify=certificate[0])
    assert client.send_bulk(HI).messages == 1
    assert client.send_bulk(HI).messages == 1
    assert server.connections == 1


def test_the_environments_ca_bundle_is_used(serve, connect, wire, certificate, monkeypatch):
    """Without a bundle of its own a client trusts the one that the environment names."""
    server = serve(wire.ok, tls=certificate[1])
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate[0])
    assert connect(server.url).send_bulk(HI).messages == 1


def test_a_ca_bundle_that_has_gone_was_not_sent(serve, connect, wire, monkeypatch):
    """A failure before there is a connection is one before the first byte."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/no/such/bundle.pem")
    with pytest.raises(NotSentError, match="bundle"):
        connect(serve(wire.ok).url.replace("http:", "https:")).send_bulk(HI)


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        ["reset"],
        ["close"],
        [b"HTTP/1.1 ", "close"],
        [HEAD + b"Content-Ty", "reset"],
        [HEAD + b"Content-Length: 1000\r\n\r\n{", "close"],
        [HEAD + b"Content-Length: 1000\r\n\r\n{", "reset"],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", "close"],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{1234\r\n", "close"],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "close"],
        [HEAD + b"\r\n{", "close"],
        [b"27821234567 Hi Thandi\r\n\r\n", "close"],
        [b"SSH-2.0-OpenSSH_9.2\r\n", "close"],
        [b"HTTP/3.0 200 OK\r\n\r\n", "close"],
        [b"HTTP/1.1 27821234567 Hi\r\n\r\n", "close"],
        [HEAD + b"A: b\r\n" * 200 + b"\r\n", "close"],
        [HEAD + b"A: " + b"b" * 70_000 + b"\r\n\r\n", "close"],
        [b"HTTP/1.1 100 Continue\r\n\r\n", "close"],
        [b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "hang"],
        [b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", "hang"],
    ],
    ids=range(19),
)
def test_what_breaks_after_the_request_is_an_unknown_outcome(serve, connect, answer):
    """However an answer fails to come, the request was read: once, never again, and no error quotes the wire."""
    answer = ["wait until the client closes" if step == "hang" else step for step in answer]
    server = serve(answer)
    with pytest.raises(UnknownOutcomeError) as caught:
        connect(server.url).send_bulk(HI)
    assert caught.value.may_have_been_sent
    assert len(server.requests) == 1
    assert server.connections == 1
    assert "27821234567" not in str(caught.value)
    assert "Thandi" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.slow
def test_breaking_off_over_tls_is_an_unknown_outcome(serve, connect, wire, certificate):
    """TLS changes nothing: the request was read."""
    server = serve(wire.reset, wire.close, tls=certificate[1])
    client = connect(server.url, verify=certificate[0])
    for count in (1, 2):
        with pytest.raises(UnknownOutcomeError):
            client.send_bulk(HI)
        assert len(server.requests) == count


def test_100_continue_is_passed_over(serve, connect, wire):
    """An interim 100 is followed by the answer (RFC 9110 section 15.2.1)."""
    server = serve(b"HTTP/1.1 100 Continue\r\n\r\n" * 2 + wire.ok)
    assert connect(server.url).send_bulk(HI).messages == 1


def test_an_interim_answer_does_not_become_the_next_ones(serve, connect, wire):
    """What follows an interim answer on its connection is never read as the answer to another request."""
    server = serve(b"HTTP/1.1 103 Early Hints\r\n\r\n" + wire.ok, wire.http(200, {**wire.sent, "EventId": 2}))
    client = connect(server.url)
    with pytest.raises(UnknownOutcomeError, match="103"):
        client.send_bulk(HI)
    assert client.send_bulk(HI).event_id == 2
    assert server.connections == 2


def test_silence_is_an_unknown_outcome(serve, connect, wire):
    """A server that reads the request and says nothing is given up on after the timeout."""
    server = serve(wire.hang)
    started = time.monotonic()
    with pytest.raises(UnknownOutcomeError, match="timed out"):
        connect(server.url, timeout=0.1).send_bulk(HI)
    assert time.monotonic() - started < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "head", [b"", HEAD, HEAD + b"Content-Length: 1000\r\n\r\n", HEAD + b"Transfer-Encoding: chunked\r\n\r\n"]
)
def test_dripping_is_bounded(serve, connect, wire, head, certificate):
    """A server that sends a byte now and then, in headers or body, holds a request no longer than both timeouts."""
    server = serve([head, wire.drip(b"HTTP/1.1 200" * 100, 0.05)], tls=certificate[1])
    started = time.monotonic()
    with pytest.raises(UnknownOutcomeError, match=r"within the time allowed|timed out"):
        connect(server.url, connect_timeout=1.0, timeout=0.2, verify=certificate[0]).send_bulk(HI)
    assert time.monotonic() - started < 5


def test_a_server_that_does_not_read_is_bounded(serve, connect, wire):
    """Writing is bounded too, and what was written in part may have been processed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        started = time.monotonic()
        client = connect(f"http://127.0.0.1:{listener.getsockname()[1]}", connect_timeout=0.2, timeout=0.2)
        with pytest.raises(UnknownOutcomeError, match="timed out"):
            client.send_bulk([Message("x" * 100_000, "27821234567")] * 100)
        assert time.monotonic() - started < 5


def test_an_answer_ahead_of_the_whole_request_is_read(connect, wire):
    """A server that refuses a long request while it is being written is heard."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:

        def refuse():
            with listener.accept()[0] as sock:
                sock.recv(1)
                sock.sendall(wire.http(413, {"errorMessage": "too long"}, "Connection: close"))
                while sock.recv(65536):
                    pass

        refusing = pool.submit(refuse)
        with pytest.raises(RefusedError, match="too long"):
            connect(f"http://127.0.0.1:{listener.getsockname()[1]}").send_bulk(
                [Message("x" * 1000, "27821234567")] * 100
            )
        refusing.result(5)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(301, RefusedError), (302, RefusedError), (303, UnknownOutcomeError), (307, RefusedError), (308, RefusedError)],
)
@pytest.mark.parametrize("location", ["/v1/elsewhere", "http://["])
def test_redirects_are_not_followed(serve, connect, wire, status, kind, location):
    """Following a redirect would carry token and texts elsewhere; 303 says where to see what a POST has led to."""
    server = serve(wire.http(status, b"", f"Location: {location}"), wire.ok)
    with pytest.raises(kind) as caught:
        connect(server.url).send_bulk(HI)
    assert status == caught.value.status
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_nothing_is_retried(serve, connect, wire, status):
    """Whether and when to try again is the caller's decision, whatever the service proposes."""
    server = serve(wire.http(status, b"", "Retry-After: 0"), wire.ok)
    with pytest.raises((ThrottledError, UnknownOutcomeError)):
        connect(server.url).send_bulk(HI)
    assert len(server.requests) == 1


def test_retry_after_comes_through(serve, connect, wire):
    """The seconds that the service asks for are in the error."""
    with pytest.raises(ThrottledError) as caught:
        connect(serve(wire.http(429, b"", "retry-after: 17")).url).send_bulk(HI)
    assert caught.value.retry_after == 17.0


def test_a_refusal_that_breaks_off_is_a_refusal(serve, connect):
    """The status line says that nothing was processed, even where the words after it are lost."""
    server = serve([b"HTTP/1.1 403 Forbidden\r\nContent-Length: 1000\r\n\r\n{", "close"])
    with pytest.raises(RefusedError, match="HTTP 403"):
        connect(server.url).send_bulk(HI)


def test_a_503_that_breaks_off_is_an_unknown_outcome(serve, connect):
    """Half of a body does not tell whose it is."""
    body = b'{"errorCode": "Busy", "errorMessage": "Lat'
    server = serve([b"HTTP/1.1 503 Busy\r\nContent-Length: 1000\r\n\r\n" + body, "close"])
    with pytest.raises(UnknownOutcomeError, match="HTTP 503"):
        connect(server.url).send_bulk(HI)


def test_a_long_answer_is_given_up_on(serve, connect, wire):
    """An answer without an end does not fill the memory."""
    server = serve([HEAD + b"\r\n", *[b" " * (1024 * 1024)] * 11, wire.hang])
    with pytest.raises(UnknownOutcomeError, match=f"longer than {MAX_RESPONSE_BYTES} bytes"):
        connect(server.url).send_bulk(HI)


def test_cookies_are_ignored(serve, connect, wire):
    """A cookie that the service sets is not sent back."""
    server = serve(wire.http(200, wire.sent, "Set-Cookie: a=b; Path=/"))
    client = connect(server.url)
    client.send_bulk(HI)
    client.send_bulk(HI)
    assert "cookie" not in server.headers(1)


def test_an_error_being_handled_is_no_reason(connect):
    """A send within an except clause does not report the error that the clause is about."""
    url = nobody_listens()
    try:
        Path("/no/such/file").read_text()
    except FileNotFoundError:
        with pytest.raises(NotSentError, match="Connection refused"):
            connect(url).send_bulk(HI)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_a_signal_passes_through(serve, connect, wire, kind):
    """What is no Exception, a signal's, is not turned into an outcome, and the connection is not used again."""

    class Interrupted:
        armed = True

        def __call__(self):
            if self.armed and server.requests:
                self.armed = False
                raise kind
            return 0.0

    server = serve(wire.ok)
    client = connect(server.url, clock=Interrupted())
    with pytest.raises(kind):
        client.send_bulk(HI)
    assert client.send_bulk(HI).messages == 1
    assert server.connections == 2


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
        "Cache-Control: no-cache",
        "Authorization: Bearer secret-token",
    }
    for number, length in enumerate(map(len, server.bodies()[:3])):
        assert sorted([*common, f"Content-Length: {length}"]) == sorted(head(server, number)[1:])
    assert sorted(common) == sorted(head(server, 3)[1:])


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("size", [1, 100], ids=["short", "long"])
def test_a_request_is_written_once(serve, connect, wire, request, scheme, size):
    """Headers and body arrive once and whole, however long they are."""
    bundle, context = request.getfixturevalue("certificate")
    server = serve(wire.ok, tls=context if scheme == "https" else None)
    connect(server.url, verify=bundle).send_bulk([Message("x" * 400, "27821234567")] * size)
    assert len(server.requests) == 1
    assert len(server.bodies()[0]) == int(server.headers(0)["content-length"])


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("http://[::1]", "[::1]"),
        ("http://[::1]:8080", "[::1]:8080"),
        ("http://127.0.0.1:80", "127.0.0.1"),
        ("https://[2001:db8::1]:443", "[2001:db8::1]"),
        ("https://sms.example.com:80", "sms.example.com:80"),
    ],
)
def test_the_host_header_names_the_port_that_is_not_the_schemes(address, host):
    """An address of IPv6 stands in one pair of brackets (RFC 9110 section 7.2)."""
    transport = Transport(connect_timeout=1.0, timeout=1.0, verify=True, pool_size=1, clock=time.monotonic)
    first, *headers = transport._route("GET", f"{address}/v1/Balance")[0].decode().splitlines()
    assert (first, f"Host: {host}" in headers) == ("GET /v1/Balance HTTP/1.1", True)


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
