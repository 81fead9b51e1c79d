import threading

import pytest

from airflow_provider_sms.exceptions import NotSentError, RefusedError, UnknownOutcomeError
from airflow_provider_sms.messages.message import Message
from airflow_provider_sms.service.connections import MAX_IDLE, Exchange

HI = [Message("Hi Thandi", "27821234567")]


def test_a_connection_is_used_again(serve, connect, wire, clock):
    """Requests that follow each other closely share a connection, after a refusal too."""
    server = serve(wire.ok, wire.http(400, b"no"), wire.ok)
    client = connect(server.url, clock=clock)
    client.send_bulk(HI)
    clock.now += MAX_IDLE
    with pytest.raises(RefusedError):
        client.send_bulk(HI)
    client.send_bulk(HI)
    assert server.connections == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_idle_connection_is_not_used_again(serve, connect, clock, request, scheme):
    """A connection that the server may be closing just now gets no request: a new one is opened."""
    bundle, context = request.getfixturevalue("certificate")
    wire = request.getfixturevalue("wire")
    server = serve(wire.ok, tls=context if scheme == "https" else None)
    client = connect(server.url, clock=clock, verify=bundle)
    client.send_bulk(HI)
    clock.now += MAX_IDLE + 0.1
    assert client.send_bulk(HI).messages == 1
    assert server.connections == 2
    clock.now += MAX_IDLE - 0.1
    client.send_bulk(HI)
    assert server.connections == 2


def test_a_connection_that_the_server_closed_is_not_used_again(serve, connect, wire):
    """A server that closes after each answer, without saying so, makes no unknown outcomes."""
    server = serve([wire.ok, wire.close])
    client = connect(server.url)
    for _ in range(5):
        client.send_bulk(HI)
        for thread in server._threads[1:]:
            thread.join(5)
    assert server.connections == 5


def test_threads_share_the_pool(serve, connect, wire):
    """As many threads as the pool is large keep their connections, and each gets its own answer."""
    together = threading.Barrier(4)

    def answer(request):
        name = request.rpartition(b'"Groups":["')[2].partition(b'"')[0]
        return [together.wait, wire.http(200, {**wire.sent, "EventId": int(name)})]

    server = serve(answer)
    client = connect(server.url, pool_size=4)
    seen = []
    between = threading.Barrier(4)

    def send(name):
        for number in range(5):
            seen.append(client.send_group("Hi", [f"{name}{number}"]).event_id)
            # All connections are back in the pool now: one too small would have closed some.
            between.wait(5)

    threads = [threading.Thread(target=send, args=(name,)) for name in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    expected = sorted(10 * n + i for n in range(1, 5) for i in range(5))
    assert expected == sorted(seen)
    assert server.connections == 4


def test_a_wait_is_cut_to_what_is_left(clock):
    """A wait has its own bound and the exchange's, and past the deadline there is none."""
    exchange = Exchange(clock.now + 10, clock)
    assert [exchange.at_most(5), exchange.at_most(15), exchange.at_most(None)] == [5, 10, 10]
    clock.now += 10
    with pytest.raises(TimeoutError):
        exchange.at_most(5)


def test_nothing_is_written_after_the_deadline(serve, connect, wire):
    """A request whose time ran out before its first byte is not sent: others may act on it as given up."""
    times = iter([0.0])
    server = serve(wire.ok)
    client = connect(server.url, clock=lambda: next(times, 100.0))
    with pytest.raises(NotSentError, match="within the time allowed"):
        client.send_bulk(HI)
    assert server.requests == []


def test_a_proxy_is_used_for_http(serve, connect, wire, monkeypatch):
    """A forwarding proxy of the environment gets the request, and what breaks there is an unknown outcome."""
    proxy = serve(wire.ok, wire.reset)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    client = connect("http://sms.invalid/v1")
    assert client.send_bulk(HI).messages == 1
    assert proxy.lines() == ["POST http://sms.invalid/v1/bulkmessages HTTP/1.1"]
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
    ],
    ids=range(6),
)
def test_a_tunnel_that_fails_was_not_sent(serve, connect, answer, monkeypatch):
    """CONNECT is not the request: a proxy that answers it otherwise, or not at all, got nothing of it."""
    proxy = serve(answer)
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
    with pytest.raises(NotSentError):
        connect("https://127.0.0.1:1/v1", connect_timeout=0.2).send_bulk(HI)


def test_a_dripping_tunnel_is_bounded(serve, connect, wire, monkeypatch):
    """A proxy that never finishes its answer to CONNECT is given up on, and nothing was sent."""
    proxy = serve(wire.drip(b"HTTP/1.1 200 OK\r\n" * 100, 0.05))
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
    with pytest.raises(NotSentError):
        connect("https://127.0.0.1:1/v1", connect_timeout=0.2, timeout=0.2).send_bulk(HI)


def test_an_unreachable_proxy_was_not_sent(connect, monkeypatch):
    """A proxy that is not there got nothing."""
    monkeypatch.setenv("http_proxy", "http://no-such-proxy.invalid:1")
    with pytest.raises(NotSentError):
        connect("http://127.0.0.1:1").send_bulk(HI)
