from __future__ import annotations

import json
import socket

import pytest

from airflow_provider_sms.sandbox.trusted_hosts import is_trusted

PATHS = [
    ("GET", "/"),
    ("GET", "/_sandbox/page/inbox.js"),
    ("GET", "/_sandbox/state"),
    ("GET", "/_sandbox/messages"),
    ("GET", "/_sandbox/events"),
    ("POST", "/_sandbox/reset"),
    ("PUT", "/_sandbox/balance"),
    ("GET", "/v1/Balance"),
    ("POST", "/v1/bulkmessages"),
    ("GET", "/v1/Authentication"),
    ("OPTIONS", "*"),
    ("GET", "/no-such-path"),
]
WEBSOCKET = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n"


def ask(client, method, target, lines, read_to_end):
    """Return status and body of the response to a request that is written byte for byte."""
    with client.connect() as connection:
        connection.settimeout(10)
        connection.sendall(f"{method} {target} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
        connection.shutdown(socket.SHUT_WR)
        head, _, body = read_to_end(connection).partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.parametrize(("method", "path"), PATHS, ids=lambda value: value)
def test_a_request_for_another_host_is_refused_on_every_path(client, read_to_end, method, path):
    """A website that points its own name at this machine can neither read nor change anything, by any path."""
    port = client.root.rpartition(":")[2]
    client.bulk(("27821234567", "Hello"))
    site = f"rebind.example.com:{port}"
    lines = f"Host: {site}\r\nOrigin: http://{site}\r\nSec-Fetch-Site: same-origin\r\n"
    status, body = ask(client, method, path, lines, read_to_end)
    assert (status, json.loads(body)["errors"][0]["errorCode"]) == (421, "OtherHost")
    assert (len(client.sandbox.state.requests), client.sandbox.state.balance) == (1, 999)


def test_an_upgrade_for_another_host_is_refused(client, read_to_end):
    """A WebSocket's handshake meets the same check."""
    status, _ = ask(client, "GET", "/_sandbox/events", f"Host: rebind.example.com\r\n{WEBSOCKET}", read_to_end)
    assert status == 421


@pytest.mark.parametrize("name", ["http://rebind.example.com", "http://127.0.0.1"])
def test_a_whole_address_in_the_request_line_is_served_nothing(client, read_to_end, name):
    """The absolute form, by which a request line overrules ``Host``, reaches no path of the sandbox."""
    status, body = ask(client, "GET", f"{name}/_sandbox/state", "Host: 127.0.0.1\r\n", read_to_end)
    assert (status, b"balance" in body) == (404, False)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_request_without_a_host_is_refused(client, read_to_end, version):
    """Neither version of HTTP is served without a ``Host``."""
    with client.connect() as connection:
        connection.sendall(f"GET /_sandbox/state HTTP/{version}\r\n\r\n".encode())
        received = read_to_end(connection)
    assert (received.split()[1][:2], b"balance" in received) == (b"42" if version == "1.0" else b"40", False)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8025", "127.8.9.10:1", "localhost", "LocalHost:8025", "[::1]", "[::1]:8025", "localhost:"],
)
def test_every_name_of_this_machine_is_served(client, read_to_end, host):
    """The whole of 127.0.0.0/8, ``[::1]`` and ``localhost`` are accepted, with any port and none."""
    assert ask(client, "GET", "/_sandbox/state", f"Host: {host}\r\n", read_to_end)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "example.com",
        "127.0.0.1.example.com",
        "localhost.example.com",
        "example.com:127",
        "127.0.0.1:80:80",
        "127.0.0.1@example.com",
        "example.com@127.0.0.1",
        "127.0.0.1, example.com",
        "0.0.0.0",
        "128.0.0.1",
        "192.168.0.1",
        "[::]",
        "[::2]:80",
        "::1",
        "2130706433",
        "localhost\x00",
        "localhost/",
    ],
)
def test_every_other_name_is_refused(host):
    """What only resembles a name of this machine is none."""
    assert not is_trusted([host.encode("latin-1")])


def test_two_hosts_are_refused():
    """Where a request has two ``Host`` headers, nobody knows which one it means."""
    assert not is_trusted([b"127.0.0.1", b"127.0.0.1"])
