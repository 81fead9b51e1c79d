from __future__ import annotations

import contextlib
import socket
from urllib.parse import urlsplit

import orjson
import pytest
import requests

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox

TOKEN = "token-of-these-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Accept": "application/json"}


class Client:
    """A client of one sandbox over real HTTP, which sends the contract's headers by default."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.root = sandbox.base_url.removesuffix("/v1")
        self.session = requests.Session()
        self.session.trust_env = False

    def call(self, method, path, *, base="/v1", headers=HEADERS, **request):
        return self.session.request(method, self.root + base + path, headers=headers, timeout=10, **request)

    def bulk(self, *messages, options=None, **request):
        body = {"Messages": [{"Destination": number, "Content": text} for number, text in messages]}
        added = {} if options is None else {"SendOptions": options}
        return self.call("POST", "/bulkmessages", json={**body, **added}, **request)

    def group(self, text, *names, **request):
        return self.call("POST", "/groupmessages", json={"Message": text, "Groups": list(names)}, **request)

    def balance(self, **request):
        return self.call("GET", "/Balance", **request)

    def control(self, method, path, **request):
        return self.call(method, path, base="/_sandbox", headers={}, **request)

    def connect(self):
        url = urlsplit(self.root)
        connection = socket.create_connection((url.hostname, url.port), timeout=10)
        return contextlib.closing(connection)

    def raw_send(self, connection, *messages):
        """Write one bulk request to a socket, byte for byte."""
        body = orjson.dumps({"Messages": [{"Destination": number, "Content": text} for number, text in messages]})
        lines = ["POST /v1/bulkmessages HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in HEADERS.items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)


@pytest.fixture
def read_to_end():
    """Return all bytes up to the end of a connection."""

    def read_to_end(connection):
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received

    return read_to_end


@pytest.fixture
def start():
    """Start sandboxes with the given settings; they stop at the end of the test."""
    with contextlib.ExitStack() as stack:

        def start_one(**settings):
            sandbox = stack.enter_context(running_sandbox(SandboxConfig(**{"token": TOKEN, **settings})))
            client = Client(sandbox)
            stack.callback(client.session.close)
            return client

        yield start_one


@pytest.fixture
def client(start):
    """Return a client of a sandbox with default settings."""
    return start()


@pytest.fixture
def state(client):
    """Return the memory of that sandbox."""
    return client.sandbox.state


@pytest.fixture
def headers():
    """Return the headers of the contract, which a test may change."""
    return dict(HEADERS)
