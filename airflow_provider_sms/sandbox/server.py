"""The sandbox's HTTP server: the service's operations, each with the fault that it meets, control paths and page.

A thread serves each connection, and owns its socket: a fault may then end it with FIN or RST, or after half a body.
"""

from __future__ import annotations

import base64
import re
import socket
import socketserver
import struct
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from http.client import responses as phrases
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

import orjson
from pydantic import ValidationError

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.contract import (
    FORMAT,
    RefusalError,
    SendRequest,
    json_number,
    parse_json,
    parse_send_request,
    refusal,
)
from airflow_provider_sms.sandbox.state import NO_FAULT, RequestRecord, SandboxState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sms.sandbox.faults import Fault, Target
    from airflow_provider_sms.sandbox.state import Operation

ADDRESS = "127.0.0.1"  # of no other interface: the page shows numbers and texts to every client
BASES = ("/v1/", "/api/v1/")
"""Both serve every operation, because the contract shows one for sending and the other for the balance."""
OPERATIONS: dict[str, tuple[str, Operation, Target]] = {
    "bulkmessages": ("POST", "bulk", "send"),
    "groupmessages": ("POST", "group", "send"),
    "Balance": ("GET", "balance", "balance"),
    "Authentication": ("GET", "authentication", "authentication"),
}
"""Method, name, and the ``on`` of the faults that the operation meets, by path."""

JSON = "application/json"
HTML = "text/html; charset=utf-8"
GATEWAY_PAGE = "<!doctype html><title>{0}</title><h1>Error {0}</h1><hr>gateway"
FAULT_CODES = {400: FORMAT, 401: "AuthenticationToken.Invalid", 403: "InsufficientCredits"}

PAGE = {
    "/": ("index.html", HTML),
    "/_sandbox/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/_sandbox/page.css": ("page.css", "text/css; charset=utf-8"),
}

_is_own_host = re.compile(r"(?:127\.0\.0\.1|localhost)(?::[0-9]*)?", re.IGNORECASE).fullmatch
_NO_LINGER = struct.pack("ii", 1, 0)  # closing sends RST and discards unsent bytes, socket(7)


class Response(NamedTuple):
    """A response that is ready to be written."""

    status: int
    body: bytes
    media_type: str = JSON
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody changes it


def json_response(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a response with a JSON body."""
    return Response(status, orjson.dumps(document), headers=headers or {})


class Handler(BaseHTTPRequestHandler):
    """One connection, and the requests on it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise each response is 40 ms late
    server: SandboxServer

    def setup(self) -> None:
        """Begin the connection."""
        super().setup()
        self.state = self.server.state
        self.connection.settimeout(self.state.config.keep_alive)

    def handle(self) -> None:
        """Serve requests until either side ends the connection."""
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, *_: object) -> None:
        """Log nothing: requests hold numbers."""

    def serve(self) -> None:
        """Read one request, and respond to it."""
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch("[0-9]{1,9}", length) or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # where the next request begins is not known
            self._respond(json_response(RefusalError(411, (FORMAT, "Content-Length is missing")).body(), 411))
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            return
        path, _, query = self.path.partition("?")
        try:
            self._check_host()
            base = next((base for base in BASES if path.startswith(base)), "")
            if base and path.removeprefix(base) in OPERATIONS:
                self._operate(path, *OPERATIONS[path.removeprefix(base)], body)
            elif path in PAGE and self.command == "GET":
                name, media_type = PAGE[path]
                self._respond(Response(200, page_file(name), media_type))
            else:
                self._respond(json_response(self._control(path, query, body)))
        except RefusalError as refused:
            self._respond(json_response(refused.body(), refused.status))

    do_GET = do_POST = do_PUT = do_DELETE = serve  # noqa: N815 - named by the standard library

    def _check_host(self) -> None:
        """Raise unless the request names this machine.

        A website can point its own name at 127.0.0.1 (DNS rebinding). A browser then takes the sandbox for a part of
        that website, whose page can read and change it. Only ``Host`` gives it away.
        """
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not _is_own_host(hosts[0]):
            raise RefusalError(421, ("OtherHost", "the sandbox is addressed as 127.0.0.1 or localhost only"))

    def _operate(self, path: str, method: str, operation: Operation, target: Target, body: bytes) -> None:
        """Serve one of the service's operations, with the fault that it meets."""
        if self.command != method:
            raise RefusalError(405, ("EntityNotFound", f"{operation} is a {method}"))
        number = next(self.state.numbers)
        fault, request, document = NO_FAULT, None, {}
        try:
            request = self._checked(operation, body)
            fault = self.state.take_fault(target)
            if fault.is_served:
                document = self._served(operation, request, fault, number)
            response = json_response(document)
        except RefusalError as refused:
            document = refused.body()
            response = json_response(document, refused.status)
        if fault.kind == "status":
            response = status_response(fault, path)
        is_dropped = fault.kind in ("drop_before", "drop_after")
        status, options = None if is_dropped else response.status, request.send_options if request else None
        self.state.requests.append(RequestRecord(number, operation, path, status, document, options))
        if is_dropped:
            self._hang_up(reset=fault.reset)
        elif not self._is_client_gone_after((target == "send") * self.state.config.latency + fault.seconds):
            self._respond(response, is_truncated=fault.kind == "truncated")

    def _checked(self, operation: Operation, body: bytes) -> SendRequest | None:
        """Perform every check that precedes the account, and return a send request's content."""
        scheme, _, credentials = self.headers.get("Authorization", "").partition(" ")
        config = self.state.config
        if operation == "authentication":
            client = base64.b64encode(f"{config.client_id}:{config.client_secret}".encode()).decode()
            if config.client_id is None or (scheme.lower(), credentials.strip()) != ("basic", client):
                raise RefusalError(401, ("InvalidCredentials", "the client id or the API secret is wrong"))
            return None
        self.state.check_token(credentials.strip() if scheme.lower() == "bearer" else "")
        if JSON not in self._media_types("Accept"):
            raise RefusalError(400, (FORMAT, f"the header Accept: {JSON} is missing"))
        if operation == "balance":
            return None
        if self._media_types("Content-Type") != [JSON]:
            raise RefusalError(400, (FORMAT, f"the header Content-Type: {JSON} is missing"))
        return parse_send_request(operation, body, config.groups)

    def _served(self, operation: Operation, request: SendRequest | None, fault: Fault, number: int) -> dict[str, Any]:
        """Return the service's response."""
        if fault.when == "before":
            self.state.spend(fault.amount)
        if request is not None:
            document = self.state.accept(request, number)
        elif operation == "balance":
            document = {"Balance": json_number(self.state.balance)}
        else:
            document = self.state.issue_token()
        if fault.when == "after":
            self.state.spend(fault.amount)
        return document

    def _media_types(self, name: str) -> list[str]:
        return [item.partition(";")[0].strip().lower() for item in self.headers.get(name, "").split(",")]

    def _control(self, path: str, query: str, body: bytes) -> Any:
        """Serve a control path, which takes no token, and return the response's document."""
        # A browser submits any website's form to this address, and names that website.
        if self.headers.get("Origin") not in (None, f"http://{self.headers['Host']}"):
            raise RefusalError(403, ("OtherSite", "in a browser, only the sandbox's own page may use these paths"))
        try:
            match self.command, path:
                case "GET", "/_sandbox/messages":
                    return self._messages(**{name: values[-1] for name, values in parse_qs(query).items()})
                case "GET", "/_sandbox/state":
                    pass
                case "POST", "/_sandbox/faults":
                    self.state.set_faults([*self.state.faults, *parse_json(body)])
                case "DELETE", "/_sandbox/faults":
                    self.state.set_faults([])
                case "PUT", "/_sandbox/balance":
                    self.state.set_balance(**parse_json(body))
                case "POST", "/_sandbox/reset":
                    self.state.reset()
                case _:
                    raise RefusalError(404, ("EntityNotFound", "the sandbox has no such path"))
        except ValidationError as error:
            raise refusal(error) from None
        except (TypeError, ValueError) as error:
            raise RefusalError(400, (FORMAT, str(error))) from None
        return {
            "balance": json_number(self.state.balance),
            "post_paid": self.state.post_paid,
            "requests": len(self.state.requests),
            "accepted_messages": len(self.state.accepted),
            "faults": self.state.faults,
        }

    def _messages(self, limit: str = "100", number: str = "") -> Any:
        """Return accepted messages, newest first, those to numbers that contain some digits."""
        found = [each for each in self.state.accepted if number in each.destination]
        return {"total": len(found), "messages": found[::-1][: max(0, int(limit))]}

    def _respond(self, response: Response, *, is_truncated: bool = False) -> None:
        """Write a whole response, or its head with half of its body, after which the connection ends."""
        status, body, media_type, headers = response
        self.close_connection |= is_truncated
        fields = {
            "Date": self.date_time_string(),
            "Connection": "close" if self.close_connection else "keep-alive",
            "Content-Type": media_type,
            "Content-Length": str(len(body)),
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        sent = body[: len(body) // 2] if is_truncated else body
        self.wfile.write(f"HTTP/1.1 {status} {phrases.get(status, '')}\r\n{head}\r\n".encode() + sent)

    def _hang_up(self, *, reset: bool) -> None:
        """End the connection without a byte: with FIN, or with RST."""
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.rfile.close()  # which would keep the socket open
            self.connection.close()

    def _is_client_gone_after(self, seconds: float) -> bool:
        """Wait, and return whether the client, or the server when it stops, ended the connection meanwhile."""
        if not seconds:
            return False
        self.connection.settimeout(seconds)
        with suppress(TimeoutError):
            self.close_connection = self.connection.recv(1, socket.MSG_PEEK) == b""
        self.connection.settimeout(self.state.config.keep_alive)
        return self.close_connection


def status_response(fault: Fault, path: str) -> Response:
    """Return the response of a ``status`` fault to a request for a path."""
    headers = {} if fault.retry_after is None else {"Retry-After": fault.retry_after}
    if 300 <= fault.status < 400:  # noqa: PLR2004 - RFC 9110 section 15.4
        headers["Location"] = path  # a client that follows it sends twice, which the witness shows
    if fault.body is not None:
        return Response(fault.status, fault.body.encode(), "text/plain; charset=utf-8", headers)
    if fault.by == "gateway":
        if fault.status == 503:  # noqa: PLR2004 - RFC 9110 section 15.6.4
            headers.setdefault("Retry-After", "5")  # as an unmodified Varnish
        name = f"{fault.status} {phrases.get(fault.status, '')}".strip()
        return Response(fault.status, GATEWAY_PAGE.format(name).encode(), HTML, headers)
    error = (FAULT_CODES.get(fault.status, "Fault"), "a fault that the sandbox was asked for")
    return json_response(RefusalError(fault.status, error).body(), fault.status, headers)


@cache
def page_file(name: str) -> bytes:
    """Return one of the page's files."""
    return (files("airflow_provider_sms.sandbox") / "static" / name).read_bytes()


class SandboxServer(socketserver.ThreadingTCPServer):
    """The server of one sandbox, which serves in a thread from the beginning.

    :param config: the sandbox's settings.
    :raises OSError: the port is taken, or the witness cannot be opened.
    """

    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, config: SandboxConfig) -> None:
        self._connections: set[Any] = set()
        self._is_stopping = False
        super().__init__((ADDRESS, config.port), Handler)
        with ExitStack() as failing:
            failing.callback(self.server_close)
            self.state = SandboxState(config)
            """The sandbox's memory, for reading and for setting faults; still readable after the end."""
            failing.pop_all()
        self.port = int(self.server_address[1])
        self.base_url = f"http://{ADDRESS}:{self.port}/v1"
        """Base URL of the service."""
        self._thread = threading.Thread(target=self._accept, name="sms-sandbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End every connection at once, and return when no thread is left: a service that fails waits for nobody."""
        self._is_stopping = True
        with suppress(OSError), socket.create_connection((ADDRESS, self.port)):  # wakes the thread
            self._thread.join()
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()
        self.state.close()

    def _accept(self) -> None:
        while not self._is_stopping:
            with suppress(OSError):  # a client that left before it was served
                connection, address = self.get_request()
                self._connections.add(connection)
                self.process_request(connection, address)

    def shutdown_request(self, request: Any) -> None:
        """End one connection."""
        self._connections.discard(request)
        super().shutdown_request(request)


@contextmanager
def running_sandbox(config: SandboxConfig | None = None) -> Iterator[SandboxServer]:
    """Run a sandbox in a thread. Leaving the context ends every connection and the thread.

    :param config: the sandbox's settings; None, the default, uses their defaults.
    :raises OSError: the port is taken, or the witness cannot be opened.
    """
    server = SandboxServer(config or SandboxConfig())
    try:
        yield server
    finally:
        server.stop()
