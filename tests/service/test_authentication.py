import base64
import re
import threading
from urllib.parse import quote_plus

import pytest

from airflow_provider_sms.exceptions import (
    AuthenticationError,
    NotSentError,
    RefusedError,
    ThrottledError,
)
from airflow_provider_sms.messages.message import Message

HI = [Message("Hi Thandi", "27821234567")]
CREDENTIALS = {"client_id": "me", "client_secret": "hunter2é"}
BASIC = "Basic " + base64.b64encode("me:hunter2é".encode()).decode()


class Service:
    """A service that gives tokens ``token-1``, ``token-2``, … and accepts those it is told to."""

    def __init__(self, wire, **answer):
        self._wire = wire
        self._answer = answer
        self.given = 0
        self.accepted = {"token-1", "token-2", "token-3"}

    def __call__(self, request):
        if b"/v1/Authentication" in request:
            self.given += 1
            body = {"token": f"token-{self.given}", "schema": "JWT", "expiresInMinutes": 1440, **self._answer}
            return self._wire.http(200, {key: value for key, value in body.items() if value is not None})
        token = request.partition(b"Authorization: Bearer ")[2].partition(b"\r\n")[0].decode()
        if token not in self.accepted:
            return self._wire.http(401, {"errorCode": "Expired"})
        return self._wire.http(200, {**self._wire.sent, "Balance": 1.5})


def tokens(server):
    return [server.headers(n)["authorization"] for n in range(len(server.requests))]


def test_a_fixed_token_is_used_once(serve, connect, wire):
    """A 401 with a token that was given is final: there is no other to try."""
    server = serve(wire.http(401, {"errorCode": "AuthenticationToken.Expired", "errorMessage": "secret-token expired"}))
    with pytest.raises(AuthenticationError, match=r"\*\*\* expired") as caught:
        connect(server.url).send_bulk(HI)
    assert caught.value.code == "AuthenticationToken.Expired"
    assert not caught.value.may_have_been_sent
    assert len(server.requests) == 1


def test_a_token_is_fetched_once_and_kept(serve, connect, wire):
    """The first request fetches a token by HTTP Basic, the next ones use it."""
    server = serve(Service(wire))
    client = connect(server.url + "/", **CREDENTIALS)
    client.send_bulk(HI)
    client.send_bulk(HI)
    assert server.lines() == ["GET /v1/Authentication HTTP/1.1", *["POST /v1/bulkmessages HTTP/1.1"] * 2]
    assert tokens(server) == [BASIC, "Bearer token-1", "Bearer token-1"]
    assert server.headers(0)["accept"] == "application/json"


@pytest.mark.parametrize(
    "minutes_and_kept",
    [(1440, 1439 * 60), (10, 9 * 60), (1.5, 81), (None, 59 * 60), (0, 59 * 60), (-1, 59 * 60), ("9", 59 * 60)]
    + [(nonsense, 59 * 60) for nonsense in (True, 10**400, 1e308, [], {})],
)
def test_a_token_is_replaced_before_its_end(serve, connect, wire, clock, minutes_and_kept):
    """Minutes are minutes; a minute or a tenth before the end it is fetched anew; an hour is assumed."""
    minutes, kept = minutes_and_kept
    service = Service(wire, expiresInMinutes=minutes)
    client = connect(serve(service).url, clock=clock, **CREDENTIALS)
    client.send_bulk(HI)
    clock.now += kept - 0.01
    client.send_bulk(HI)
    assert service.given == 1
    clock.now += 0.02
    client.send_bulk(HI)
    assert service.given == 2


def test_a_rejected_token_is_replaced_once(serve, connect, wire):
    """A 401 processed nothing: one new token, the same request once more."""
    service = Service(wire)
    service.accepted = {"token-2"}
    server = serve(service)
    assert connect(server.url, **CREDENTIALS).send_bulk(HI).messages == 1
    assert tokens(server) == [BASIC, "Bearer token-1", BASIC, "Bearer token-2"]
    assert server.bodies()[1] == server.bodies()[3]


def test_a_second_401_is_final(serve, connect, wire):
    """A new token that is not accepted either is not replaced again."""
    service = Service(wire)
    service.accepted = set()
    server = serve(service)
    with pytest.raises(AuthenticationError):
        connect(server.url, **CREDENTIALS).send_bulk(HI)
    assert len(server.requests) == 4


def test_the_balance_gets_a_new_token_too(serve, connect, wire):
    """A GET is treated no worse than a POST."""
    service = Service(wire)
    service.accepted = {"token-2"}
    assert connect(serve(service).url, **CREDENTIALS).get_balance().amount == 1.5


def test_many_threads_fetch_one_token(serve, connect, wire):
    """Threads that all get a 401 at once fetch one new token between them."""
    service = Service(wire)
    together = threading.Barrier(6)

    def answer(request):
        made = service(request)
        return [together.wait, made] if b" 401 " in made[:20] else made

    server = serve(answer)
    client = connect(server.url, **CREDENTIALS)
    client.send_bulk(HI)
    service.accepted = {"token-2"}
    sent = []
    threads = [threading.Thread(target=lambda: sent.append(client.send_bulk(HI).messages)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sent == [1] * 6
    assert service.given == 2


def test_threads_share_a_failure(serve, connect, wire):
    """Threads that wait for a token that does not come all fail with it, rather than each trying in turn."""
    server = serve([0.3, wire.http(500, b"")])
    client = connect(server.url, **CREDENTIALS)
    together = threading.Barrier(6)
    failures = []

    def send():
        together.wait(5)
        try:
            client.send_bulk(HI)
        except NotSentError as error:
            failures.append(error)

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len({id(failure) for failure in failures}) == 6
    assert {(str(failure), failure.status) for failure in failures} == {("no token came: HTTP 500", 500)}
    assert len(server.requests) == 1


def test_a_failure_is_not_kept(serve, connect, wire):
    """The next call tries again."""
    server = serve(wire.http(500, b""), wire.http(200, {"Token": "t"}), wire.ok)
    client = connect(server.url, **CREDENTIALS)
    with pytest.raises(NotSentError):
        client.send_bulk(HI)
    assert client.send_bulk(HI).messages == 1


@pytest.mark.parametrize(
    "answer",
    [
        "reset",
        "close",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 204 No\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{x",
        b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"token":""}',
        b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"token":1}',
        b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"token":"x\\r\\ny"}',
    ],
    ids=range(11),
)
def test_without_a_token_nothing_is_sent(serve, connect, answer):
    """Whatever happened to the token's request, the messages were not sent, and that may be tried again."""
    server = serve([answer, "close"])
    with pytest.raises(NotSentError, match="no token came") as caught:
        connect(server.url, **CREDENTIALS).send_bulk(HI)
    assert caught.value.transient
    assert not caught.value.may_have_been_sent
    assert server.lines() == ["GET /v1/Authentication HTTP/1.1"]
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("status", [401, 403])
def test_wrong_credentials_are_an_authentication_error(serve, connect, wire, status):
    """Credentials that are not accepted are named as such, with the service's words and without the secret."""
    words = {"errorCode": "InvalidCredentials", "errorMessage": f"hunter2é and {BASIC[6:]} are wrong"}
    server = serve(wire.http(status, words))
    with pytest.raises(AuthenticationError, match=r"Authentication: .*: \*\*\* and \*\*\* are wrong") as caught:
        connect(server.url, **CREDENTIALS).send_bulk(HI)
    assert (status, "InvalidCredentials") == (caught.value.status, caught.value.code)
    assert len(server.requests) == 1


@pytest.mark.parametrize(("status", "kind"), [(429, ThrottledError), (404, RefusedError)])
def test_other_answers_mean_what_they_mean(serve, connect, wire, status, kind):
    """A token's request that is throttled or refused says so, and none of it may have been sent."""
    server = serve(wire.http(status, b"", "Retry-After: 3"))
    with pytest.raises(kind) as caught:
        connect(server.url, **CREDENTIALS).send_bulk(HI)
    assert not caught.value.may_have_been_sent
    assert (3.0 if kind is ThrottledError else None) == caught.value.retry_after


@pytest.mark.parametrize(
    ("status", "body", "wait"),
    [
        (503, b"<h1>Busy</h1>", None),
        (503, {"errorCode": "Busy"}, 3.0),
        (500, b"", None),
        (408, b"", None),
        (303, b"", None),
    ],
)
def test_a_token_that_does_not_come_leaves_nothing_sent(serve, connect, wire, status, body, wait):
    """Whatever became of a token's request, that which it was wanted for was not sent."""
    server = serve(wire.http(status, body, "Retry-After: 3"))
    with pytest.raises(NotSentError, match=f"no token came: HTTP {status}") as caught:
        connect(server.url, **CREDENTIALS).send_bulk(HI)
    assert (status, wait, True) == (caught.value.status, caught.value.retry_after, caught.value.transient)
    assert len(server.requests) == 1


def test_a_refusal_hides_token_and_secret(serve, connect, wire):
    """The service may repeat what it was given, whichever request it answers."""
    words = {"errorMessage": f"t0k3n of hunter2é ({BASIC[6:]}) is not enough"}
    server = serve(wire.http(200, {"token": "t0k3n"}), wire.http(403, words))
    with pytest.raises(RefusedError, match=r"\*\*\* of \*\*\* \(\*\*\*\) is not enough"):
        connect(server.url, **CREDENTIALS).send_bulk(HI)


@pytest.mark.parametrize("escaped", [str, quote_plus, lambda text: text.rstrip("=")], ids=["plain", "URL", "unpadded"])
@pytest.mark.parametrize(
    "secret", ["hunter2é", "me:hunter2é", BASIC[6:], "t0k3n/Of+60/minutes="], ids=["secret", "pair", "Basic", "token"]
)
def test_a_refusal_hides_them_however_it_writes_them(serve, connect, wire, secret, escaped):
    """A gateway's page of the request that it refused is escaped."""
    page = f"refused: Authorization={escaped(secret)}"
    server = serve(wire.http(200, {"token": "t0k3n/Of+60/minutes="}), wire.http(403, page.encode()))
    with pytest.raises(RefusedError) as caught:
        connect(server.url, **CREDENTIALS).send_bulk(HI)
    assert re.search(r": (\*\*\*|refused: Authorization=[*=.:me]+)$", str(caught.value))


def test_a_token_that_fails_after_a_401_leaves_nothing_sent(serve, connect, wire):
    """A 401 processed nothing, so a new token that does not come means that nothing was sent."""
    server = serve(wire.http(200, {"token": "t"}), wire.http(401, b""), wire.reset)
    with pytest.raises(NotSentError):
        connect(server.url, **CREDENTIALS).send_bulk(HI)
    assert len(server.requests) == 3
