from __future__ import annotations

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
from airflow_provider_sms.service.settings import Settings
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
        (None, "timed out"),
    ],
    ids=["nobody listens", "no such host", "no such host, TLS", "no answer"],
)
def test_what_cannot_be_connected_to_was_not_sent(connect, url, reason):
    """A refused port, a name that does not resolve, a host that does not answer: no byte was written."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for filler in (first, second):
            filler.settimeout(0)
            filler.connect_ex(listener.getsockname())
        url = url or f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(NotSentError, match=reason) as caught:
            connect(url, connect_timeout=0.1).send_bulk(HI)
    assert not caught.value.may_have_been_sent
    assert caught.value.transient


@pytest.mark.parametrize(
    ("verify", "environment", "error"),
    [
        ("bundle", ssl.get_default_verify_paths().openssl_cafile, None),
        (True, "bundle", None),
        (True, None, "CERTIFICATE_VERIFY_FAILED"),
        (True, "/no/such/bundle.pem", "bundle"),
    ],
)
def test_certificates_are_verified_as_the_client_says(
    serve, connect, wire, certificate, monkeypatch, verify, environment, error
):
    """With its own bundle, else with the environment's, which turns nothing on again, in each request alike."""
    server = serve(wire.ok, tls=certificate[1])
    if environment:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate[0] if environment == "bundle" else environment)
    client = connect(server.url, verify=certificate[0] if verify == "bundle" else verify)
    for _ in range(2):
        if error is None:
            assert client.send_bulk(HI).messages == 1
        else:
            with pytest.raises(NotSentError, match=error):
                client.send_bulk(HI)
    assert len(server.requests) == (2 if error is None else 0)


def test_a_failed_handshake_was_not_sent(serve, connect, wire):
    """A server that does not speak TLS got a handshake and no request."""
    server = serve(wire.ok, greeting=b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(NotSentError, match=r"(?i)wrong.version.number|record layer"):
        connect(server.url.replace("http:", "https:")).send_bulk(HI)


HEAD, CHUNKED = b"HTTP/1.1 200 OK\r\n", b"Transfer-Encoding: chunked\r\n\r\n"
HANG = "wait until the client closes"


@pytest.mark.parametrize(
    "answer",
    [
        ["reset"],
        ["close"],
        [b"HTTP/1.1 ", "close"],
        [HEAD + b"Content-Ty", "reset"],
        *([HEAD + b"Content-Length: 1000\r\n\r\n{", end] for end in ("close", "reset")),
        *([HEAD + CHUNKED + chunk, "close"] for chunk in (b"5\r\n{", b"5\r\n{1234\r\n", b"zz\r\n")),
        [HEAD + b"\r\n{", "close"],
        [b"27821234567 Hi Thandi\r\n\r\n", "close"],
        [b"SSH-2.0-OpenSSH_9.2\r\n", "close"],
        [b"HTTP/3.0 200 OK\r\n\r\n", "close"],
        [b"HTTP/1.1 27821234567 Hi\r\n\r\n", "close"],
        [HEAD + b"A: b\r\n" * 200 + b"\r\n", "close"],
        [HEAD + b"A: " + b"b" * 70_000 + b"\r\n\r\n", "close"],
        [b"HTTP/1.1 100 Continue\r\n\r\n", "close"],
        [b"HTTP/1.1 101 Switching Protocols\r\n\r\n", HANG],
        [b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", HANG],
    ],
    ids=range(19),
)
def test_what_breaks_after_the_request_is_an_unknown_outcome(serve, connect, answer):
    """However an answer fails to come, the request was read: once, never again, and no error quotes the wire."""
    server = serve(answer)
    with pytest.raises(UnknownOutcomeError) as caught:
        connect(server.url).send_bulk(HI)
    assert caught.value.may_have_been_sent
    assert (len(server.requests), server.connections) == (1, 1)
    assert not [word for word in ("27821234567", "Thandi") if word in str(caught.value)]
    assert caught.value.__suppress_context__


def test_an_interim_answer_does_not_become_the_next_ones(serve, connect, wire):
    """A 100 is passed over (RFC 9110 section 15.2.1); what follows another is never read as another request's."""
    server = serve(
        b"HTTP/1.1 100 Continue\r\n\r\n" * 2 + wire.ok,
        b"HTTP/1.1 103 Early Hints\r\n\r\n" + wire.ok,
        wire.http(200, {**wire.sent, "EventId": 2}),
    )
    client = connect(server.url)
    assert client.send_bulk(HI).messages == 1
    with pytest.raises(UnknownOutcomeError, match="103"):
        client.send_bulk(HI)
    assert client.send_bulk(HI).event_id == 2
    assert server.connections == 2


DRIPS = [b"", HEAD, HEAD + b"Content-Length: 1000\r\n\r\n", HEAD + CHUNKED]


@pytest.mark.parametrize("head", [None, *(pytest.param(each, marks=pytest.mark.slow) for each in DRIPS)], ids=range(5))
def test_silence_and_dripping_are_bounded(serve, connect, wire, head, certificate):
    """A server that says nothing, or a byte now and then, in headers or body, is given up on within both timeouts."""
    answer = wire.hang if head is None else [head, wire.drip(b"HTTP/1.1 200" * 100, 0.05)]
    server = serve(answer, tls=None if head is None else certificate[1])
    started = time.monotonic()
    with pytest.raises(UnknownOutcomeError, match=r"within the time allowed|timed out"):
        connect(server.url, timeout=0.2, verify=certificate[0]).send_bulk(HI)
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
    ("kind", "statuses"),
    [(RefusedError, (301, 302, 307, 308)), (UnknownOutcomeError, (303, 500, 502, 503, 504)), (ThrottledError, (429,))],
)
@pytest.mark.parametrize("location", ["/v1/elsewhere", "http://["])
def test_nothing_is_followed_or_retried(serve, connect, wire, kind, statuses, location):
    """A redirect would carry token and texts elsewhere; when to try again is for the caller, who gets the seconds."""
    for status in statuses:
        server = serve(wire.http(status, b"", f"Location: {location}", "retry-after: 0"), wire.ok)
        with pytest.raises(kind) as caught:
            connect(server.url).send_bulk(HI)
        assert (caught.value.status, len(server.requests)) == (status, 1)
        assert caught.value.retry_after == (0.0 if kind is ThrottledError else None)


@pytest.mark.parametrize(("status", "kind"), [(403, RefusedError), (503, UnknownOutcomeError)])
def test_an_error_that_breaks_off_means_what_its_status_alone_means(serve, connect, status, kind):
    """A refusal stays one, though its words are lost; half of a body does not tell whose 503 it is."""
    body = b'{"errorCode": "Busy", "errorMessage": "Lat'
    server = serve([b"HTTP/1.1 %d No\r\nContent-Length: 1000\r\n\r\n%b" % (status, body), "close"])
    with pytest.raises(kind, match=f"HTTP {status}"):
        connect(server.url).send_bulk(HI)


def test_a_long_answer_is_given_up_on(serve, connect, wire):
    """An answer without an end does not fill the memory."""
    server = serve([HEAD + b"\r\n", *[b" " * (1024 * 1024)] * 11, wire.hang])
    with pytest.raises(UnknownOutcomeError, match=f"longer than {MAX_RESPONSE_BYTES} bytes"):
        connect(server.url).send_bulk(HI)


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


def test_every_request_has_exactly_these_headers(serve, connect, wire, tmp_path, monkeypatch):
    """None of an earlier request, no cookie, nothing out of ~/.netrc: the length is that of its own body."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server = serve(
        wire.http(200, wire.sent, "Set-Cookie: a=b; Path=/"), wire.ok, wire.ok, wire.http(200, {"Balance": 1})
    )
    client = connect(server.url)
    for text in ("Hi Thandi", "Hi Thandi, and much more", "Hi Thandi"):
        client.send_bulk([Message(text, "27821234567")])
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
    lengths = [[f"Content-Length: {len(body)}"] for body in server.bodies()[:3]]
    for request, length in zip(server.requests, [*lengths, []], strict=True):
        _, *headers = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
        assert sorted(headers) == sorted([*common, *length])


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
    settings = Settings(base_url=address, token="t", client_id=None, client_secret=None, allow_http=True)
    transport = Transport(settings, 1, time.monotonic)
    first, *headers = transport._route("GET", f"{address}/v1/Balance")[0].decode().splitlines()
    assert (first, f"Host: {host}" in headers) == ("GET /v1/Balance HTTP/1.1", True)


@pytest.mark.parametrize("names", ["127.0.0.1", "example.com,127.0.0.1", "*"])
def test_the_environment_is_read_with_the_first_request(serve, connect, wire, monkeypatch, names):
    """A proxy that appears later is that of later clients; what the environment exempts is reached directly."""
    server, proxy = serve(wire.ok), serve(wire.ok)

    def reached(client):
        client.send_bulk(HI)
        return len(server.requests), len(proxy.requests)

    first = connect(server.url)
    assert reached(first) == (1, 0)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    assert reached(first) == (2, 0)
    later = connect(server.url)
    assert reached(later) == (2, 1)
    monkeypatch.setenv("no_proxy", names)
    assert reached(later) == (2, 2)
    exempt = connect(server.url)
    assert [reached(exempt), reached(exempt)] == [(3, 2), (4, 2)]
