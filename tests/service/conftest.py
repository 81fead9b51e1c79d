"""A server that answers byte for byte as scripted, and clients that talk to it."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import json
import socket
import ssl
import struct
import threading
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.faults.proxy import read_whole

from airflow_provider_sms.service.client import SmsClient
from airflow_provider_sms.service.elapsed import elapsed
from airflow_provider_sms.service.settings import Settings

SENT = {
    "Cost": 1.5,
    "RemainingBalance": 998.5,
    "EventId": 9007199254740993,
    "Sample": "Hi Thandi",
    "Messages": 1,
    "Parts": 1,
    "CostBreakDown": [{"Network": "Local", "Cost": 1.5, "Quantity": 1}],
    "ErrorReport": {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": []},
}


@dataclass(frozen=True)
class Drip:
    """Bytes sent one at a time."""

    data: bytes
    pause: float


CLOSE, RESET, HANG, START_TLS = "close", "reset", "wait until the client closes", "handshake"


def http(status, body=b"", *headers):
    """Spell out an answer with its length."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class RawServer:
    """A server on 127.0.0.1 that plays a script per request, and keeps what it received."""

    def __init__(self, script, *, tls=None, tls_inside=None, greeting=None):
        self.requests = []
        self.connections = 0
        self._script = script
        self._tls = tls
        self._tls_inside = tls_inside
        self._greeting = greeting
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._open = []
        self._raw = []
        self._threads = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}/v1"
        self._start(self._accept)

    def bodies(self):
        return [request.partition(b"\r\n\r\n")[2] for request in self.requests]

    def headers(self, number):
        lines = self.requests[number].partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    def lines(self):
        return [request.partition(b"\r\n")[0].decode() for request in self.requests]

    def below_tls(self, number):
        """Give the socket below the TLS of a connection."""
        return self._raw[number]

    def stop(self):
        self._stopped.set()
        for sock in (self._listener, *self._open, *self._raw):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()

    def _start(self, target, *args):
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock = self._listener.accept()[0]
                self.connections += 1
                self._open.append(sock)
                self._start(self._serve, sock)

    def _serve(self, sock):
        # A client that gives up is part of the script: its end shows as an error here.
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(sock.close)
            if self._greeting:
                sock.sendall(self._greeting)
            if self._tls:
                self._raw.append(sock.dup())
                sock = stack.enter_context(self._tls.wrap_socket(sock, server_side=True))
            while True:
                request = read_whole(sock)
                with self._lock:
                    self.requests.append(request)
                    steps = self._next(request)
                for step in steps:
                    sock = self._play(step, sock, stack)

    def _next(self, request):
        if callable(self._script):
            steps = self._script(request)
        else:
            steps = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return steps if isinstance(steps, list) else [steps]

    def _play(self, step, sock, stack):
        if callable(step):
            step()
        elif isinstance(step, bytes):
            sock.sendall(step)
        elif isinstance(step, Drip):
            for byte in step.data:
                self._stopped.wait(step.pause)
                sock.sendall(bytes([byte]))
        elif isinstance(step, float):
            self._stopped.wait(step)
        elif step == START_TLS:
            return stack.enter_context(self._tls_inside.wrap_socket(sock, server_side=True))
        elif step == HANG:
            sock.recv(1)
        else:
            if step == RESET:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
            raise ConnectionError
        return sock


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch, tmp_path):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


@pytest.fixture
def serve():
    """Start servers: each argument is what one request gets (the last one again and again), or one function."""
    with contextlib.ExitStack() as stack:

        def start(*script, **options):
            server = RawServer(script[0] if len(script) == 1 and callable(script[0]) else list(script), **options)
            stack.callback(server.stop)
            return server

        yield start


@pytest.fixture
def connect():
    """Make clients that are closed in the end, with short timeouts and the token ``secret-token``."""
    with contextlib.ExitStack() as stack:

        def make(url, *, pool_size=10, clock=elapsed, **options):
            credentials = {"token": None if "client_id" in options else "secret-token", "client_id": None}
            credentials |= {"client_secret": None, "allow_http": True}
            settings = Settings(**{"base_url": url, "connect_timeout": 2.0, "timeout": 2.0, **credentials, **options})
            return stack.enter_context(SmsClient(settings, pool_size=pool_size, clock=clock))

        yield make


@pytest.fixture(scope="session")
def wire():
    """Give what scripts are written in."""
    return SimpleNamespace(
        http=http, drip=Drip, close=CLOSE, reset=RESET, hang=HANG, start_tls=START_TLS, sent=SENT, ok=http(200, SENT)
    )


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Make a certificate for 127.0.0.1: the path of it, and a server's context with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path_factory.mktemp("tls") / "certificate-and-key.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return str(path), context
