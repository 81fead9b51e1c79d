import base64
import io
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from urllib3.util.wait import wait_for_read

from airflow_provider_sms.exceptions import NotSentError, ServiceError, UnknownOutcomeError
from airflow_provider_sms.messages.message import Message
from airflow_provider_sms.service import connections
from airflow_provider_sms.service.connections import MAX_IDLE, Exchange, has_input, write

HI = [Message("Hi Thandi", "27821234567")]


def numbered(wire, number):
    """Give a response that tells which request it is for."""
    return wire.http(200, {**wire.sent, "EventId": number})


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_connection_is_used_again_unless_it_was_idle(serve, connect, wire, clock, certificate, scheme):
    """Requests that follow each other closely share one; one that the server may be closing just now gets none."""
    server = serve(wire.ok, tls=certificate[1] if scheme == "https" else None)
    client = connect(server.url, clock=clock, verify=certificate[0])
    opened = []
    for idle in (0.0, MAX_IDLE, MAX_IDLE, MAX_IDLE + 0.1, MAX_IDLE):
        clock.now += idle
        client.send_bulk(HI)
        opened.append(server.connections)
    client.close()  # which gives up connections, not the client
    client.send_bulk(HI)
    assert [*opened, server.connections] == [1, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("body", [b"", b'{"errorCode": "Busy"}'])
@pytest.mark.parametrize("status", [201, 204, 307, 400, 401, 403, 408, 429, 500, 502, 503])
def test_a_connection_is_not_used_after_an_error(serve, connect, wire, status, body):
    """Whoever says anything but 200 may say the rest of it later, on the same connection."""
    server = serve(wire.http(status, b"" if status == 204 else body), wire.ok)
    client = connect(server.url)
    with pytest.raises(ServiceError):
        client.send_bulk(HI)
    assert client.send_bulk(HI).messages == 1
    assert server.connections == 2


@pytest.mark.parametrize("what", ["again", "a byte", "a line end", "half", "long"])
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_what_stands_behind_an_answer_is_not_the_next_ones(serve, connect, wire, framing, what):
    """An answer with anything behind it is the last that is read from its connection."""
    answer = numbered(wire, 1)
    if framing == "chunks":
        body = answer.partition(b"\r\n\r\n")[2]
        answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    surplus = {"again": answer, "a byte": b"x", "a line end": b"\r\n", "half": answer[:20], "long": answer * 100}[what]
    server = serve(answer + surplus, numbered(wire, 2))
    client = connect(server.url)
    assert [client.send_bulk(HI).event_id, client.send_bulk(HI).event_id] == [1, 2]
    assert server.connections == 2


def test_an_answer_that_tls_has_decrypted_already_is_not_the_next_ones(serve, connect, wire, certificate):
    """An answer that waits within TLS makes no socket readable, and is seen all the same."""
    # All that is read at once is the first answer; the second, of the same record, stays with TLS.
    sent = {**wire.sent, "EventId": 1, "Sample": ""}
    sent["Sample"] = "x" * (io.DEFAULT_BUFFER_SIZE - len(wire.http(200, sent)) - 1)
    first = wire.http(200, sent)
    first = first.replace(b" Whatever", b" Whatever" + b"." * (io.DEFAULT_BUFFER_SIZE - len(first)))
    assert len(first) == io.DEFAULT_BUFFER_SIZE
    server = serve(first + numbered(wire, 1), numbered(wire, 2), tls=certificate[1])
    client = connect(server.url, verify=certificate[0])
    assert [client.send_bulk(HI).event_id, client.send_bulk(HI).event_id] == [1, 2]
    assert server.connections == 2


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("early", [b"HTTP/1.1 408 Request Timeout\r\n\r\n", b"x"])
def test_a_connection_that_spoke_while_idle_is_not_used_again(serve, connect, wire, certificate, scheme, early):
    """Bytes that came after an answer are nobody's: the next request opens a connection, and is sent."""
    said, later = threading.Event(), threading.Event()
    server = serve(
        [numbered(wire, 1), later.wait, early, said.set],
        numbered(wire, 2),
        tls=certificate[1] if scheme == "https" else None,
    )
    client = connect(server.url, verify=certificate[0])
    client.send_bulk(HI)
    later.set()
    assert said.wait(5)
    assert client.send_bulk(HI).event_id == 2
    assert server.connections == 2


def test_half_a_tls_record_is_looked_at(serve, connect, wire, certificate):
    """A record of which a part has arrived may be the rest of an earlier answer: its connection is not used."""
    server = serve(numbered(wire, 1), numbered(wire, 2), tls=certificate[1])
    client = connect(server.url, verify=certificate[0])
    client.send_bulk(HI)
    server.below_tls(0).sendall(b"\x17\x03\x03\x00\x40half")
    assert client.send_bulk(HI).event_id == 2
    assert server.connections == 2


def test_bytes_on_a_new_connection_leave_the_request_unsent(serve, connect, wire, monkeypatch):
    """What the other side says first would be read as the answer: so nothing is written, and it can be tried again."""
    server = serve(wire.ok, greeting=numbered(wire, 1))
    client = connect(server.url)
    monkeypatch.setattr(connections, "has_input", lambda sock: wait_for_read(sock, 5) and has_input(sock))
    with pytest.raises(NotSentError, match="bytes came on the connection before the request was written") as caught:
        client.send_bulk(HI)
    assert server.requests == []
    assert caught.value.transient


def test_session_tickets_are_no_reason_for_a_new_connection(serve, connect, wire, certificate):
    """TLS 1.3 sends tickets once the handshake is done: they are no data, on a new connection or on a kept one."""
    assert certificate[1].num_tickets > 0

    def clock():
        # A new connection is looked at when its tickets have arrived.
        time.sleep(0.01)
        return 0.0

    server = serve(wire.ok, tls=certificate[1])
    client = connect(server.url, verify=certificate[0], clock=clock)
    for _ in range(5):
        assert client.send_bulk(HI).messages == 1
    assert server.connections == 1


def test_a_reset_is_something_to_read():
    """A connection that the other side has reset is not taken for a quiet one."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sock:
        other = listener.accept()[0]
        assert not has_input(sock)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        other.close()
        assert has_input(sock)


def test_threads_share_the_pool(serve, connect, wire):
    """As many threads as the pool is large keep their connections, and each gets its own answer."""
    together, between = threading.Barrier(4), threading.Barrier(4)

    def answer(request):
        name = request.rpartition(b'"Groups":["')[2].partition(b'"')[0]
        return [together.wait, numbered(wire, int(name))]

    server = serve(answer)
    client = connect(server.url, pool_size=4)

    def send(first):
        for number in range(first, first + 5):
            assert client.send_group("Hi", [str(number)]).event_id == number
            # All connections are back in the pool now: one too small would have closed some.
            between.wait(5)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, (10, 20, 30, 40)))
    assert (len(server.requests), server.connections) == (20, 4)


class Pieces:
    """A socket, but not a plain one, that keeps what is written."""

    def __init__(self):
        self.written = []
        self.timeout = None

    def gettimeout(self):
        return self.timeout

    def settimeout(self, seconds):
        self.timeout = seconds

    def sendall(self, data):
        self.written.append((len(data), self.timeout))


def test_tls_is_written_record_by_record(clock):
    """Each write waits no longer than its own bound and what is left; the first is noted though it fails."""
    sock, exchange = Pieces(), Exchange(clock.now + 10, clock)
    write(sock, b"x" * 40_000, exchange, 30.0)
    write(sock, b"x", exchange, 5.0)
    assert sock.written == [(16_384, 10.0), (16_384, 10.0), (7_232, 10.0), (1, 5.0)]
    sock.written, exchange.written = None, False
    with pytest.raises(AttributeError):
        write(sock, b"x", exchange, 1.0)
    assert exchange.written


def test_nothing_is_written_after_the_deadline(serve, connect, wire):
    """A request whose time ran out before its first byte is not sent: others may act on it as given up."""
    times = iter([0.0, 0.0])
    server = serve(wire.ok)
    client = connect(server.url, clock=lambda: next(times, 100.0))
    with pytest.raises(NotSentError, match="within the time allowed"):
        client.send_bulk(HI)
    assert server.requests == []


def test_a_proxy_is_used_for_http(serve, connect, wire, monkeypatch):
    """A forwarding proxy gets the request and, each time, its own credentials; what breaks there is unknown."""
    proxy = serve(wire.ok, wire.ok, wire.reset)
    monkeypatch.setenv("http_proxy", f"http://me:hunter2@127.0.0.1:{proxy.port}")
    client = connect("http://sms.invalid/v1")
    for number in range(2):
        assert client.send_bulk(HI).messages == 1
        headers = proxy.headers(number)
        assert headers["proxy-authorization"] == "Basic " + base64.b64encode(b"me:hunter2").decode()
        assert headers["authorization"] == "Bearer secret-token"
    assert proxy.lines() == ["POST http://sms.invalid/v1/bulkmessages HTTP/1.1"] * 2
    with pytest.raises(UnknownOutcomeError):
        client.send_bulk(HI)


def test_a_proxy_is_used_for_https(serve, connect, wire, certificate, monkeypatch):
    """A tunnel is asked for without the token; what breaks inside it is an unknown outcome."""
    opened = b"HTTP/1.1 200 Connection established\r\n\r\n"
    proxy = serve([opened, wire.start_tls], wire.ok, wire.reset, tls_inside=certificate[1])
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
    client = connect("https://127.0.0.1:1/v1", verify=certificate[0])
    assert client.send_bulk(HI).messages == 1
    assert proxy.lines()[0].startswith("CONNECT 127.0.0.1:1 ")
    assert proxy.lines()[1:] == ["POST /v1/bulkmessages HTTP/1.1"]
    assert b"secret-token" not in proxy.requests[0]
    with pytest.raises(UnknownOutcomeError):
        client.send_bulk(HI)


@pytest.mark.parametrize(
    "answer",
    [
        [b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "close"],
        [b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "close"],
        [b"nonsense\r\n\r\n", "close"],
        ["close"],
        ["reset"],
        ["wait until the client closes"],
        ["drip"],
        None,
    ],
    ids=range(8),
)
def test_a_tunnel_that_fails_was_not_sent(serve, connect, wire, answer, monkeypatch):
    """CONNECT is not the request: a proxy that answers it otherwise, never, or is not there, got nothing of it."""
    answer = wire.drip(b"HTTP/1.1 200 OK\r\n" * 100, 0.05) if answer == ["drip"] else answer
    proxy = "127.0.0.1:1" if answer is None else f"127.0.0.1:{serve(answer).port}"
    monkeypatch.setenv("https_proxy", f"http://{proxy}")
    with pytest.raises(NotSentError):
        connect("https://127.0.0.1:2/v1", connect_timeout=0.2, timeout=0.2).send_bulk(HI)
