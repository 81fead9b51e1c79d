import base64
import re
import threading
from urllib.parse import quote_plus

import pytest

from airflow_provider_sms.exceptions import AuthenticationError, NotSentError, RefusedError, ThrottledError
from airflow_provider_sms.messages.message import Message
from airflow_provider_sms.service.echoes import WITHHELD

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


def sent_by_six_at_once(client):
    """Send in six threads, and return what each got: the messages taken, or an error."""
    together, found = threading.Barrier(6), []

    def send():
        together.wait(5)
        try:
            found.append(client.send_bulk(HI).messages)
        except NotSentError as error:
            found.append(error)

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    return found


def test_a_fixed_token_is_used_once(serve, connect, wire):
    """A 401 with a token that was given is final: there is no other to try."""
    server = serve(wire.http(401, {"errorCode": "AuthenticationToken.Expired", "errorMessage": "secret-token expired"}))
    with pytest.raises(AuthenticationError, match=re.escape(WITHHELD)) as caught:
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


@pytest.mark.parametrize(
    ("minutes", "kept"),
    [(1440, 1439 * 60), (10, 9 * 60), (1.5, 81)]
    + [(nonsense, 59 * 60) for nonsense in (None, 0, -1, "9", True, 10**400, 1e308, [], {})],
)
def test_a_token_is_replaced_before_its_end(serve, connect, wire, clock, minutes, kept):
    """Minutes are minutes; a minute or a tenth before the end it is fetched anew; an hour is assumed."""
    service = Service(wire, expiresInMinutes=minutes)
    client = connect(serve(service).url, clock=clock, **CREDENTIALS)
    client.send_bulk(HI)
    clock.now += kept - 0.01
    client.send_bulk(HI)
    assert service.given == 1
    clock.now += 0.02
    client.send_bulk(HI)
    assert service.given == 2


@pytest.mark.parametrize("call", [lambda client: client.send_bulk(HI), lambda client: client.get_balance()])
def test_a_rejected_token_is_replaced_once(serve, connect, wire, call):
    """A 401 processed nothing: one new token, the same request once more; a second 401 is final."""
    service = Service(wire)
    service.accepted = {"token-2"}
    server = serve(service)
    client = connect(server.url, **CREDENTIALS)
    assert call(client)
    assert tokens(server) == [BASIC, "Bearer token-1", BASIC, "Bearer token-2"]
    assert server.bodies()[1] == server.bodies()[3]
    service.accepted = set()
    with pytest.raises(AuthenticationError):
        call(client)
    assert tokens(server)[4:] == ["Bearer token-2", BASIC, "Bearer token-3"]


def test_many_threads_fetch_one_token(serve, connect, wire):
    """Threads that all get a 401 at once fetch one new token between them."""
    service = Service(wire)
    together = threading.Barrier(6)

    def answer(request):
        made = service(request)
        return [together.wait, made] if b" 401 " in made[:20] else made

    client = connect(serve(answer).url, **CREDENTIALS)
    client.send_bulk(HI)
    service.accepted = {"token-2"}
    assert (sent_by_six_at_once(client), service.given) == ([1] * 6, 2)


def test_threads_share_a_failure(serve, connect, wire):
    """Threads that wait for a token that does not come all fail with it, each with its own error; a later call asks."""
    server = serve([0.3, wire.http(500, b"")], wire.http(200, {"Token": "t"}), wire.ok)
    client = connect(server.url, **CREDENTIALS)
    failures = sent_by_six_at_once(client)
    assert len({id(failure) for failure in failures}) == 6
    assert {(str(failure), failure.status) for failure in failures} == {("no token came: HTTP 500", 500)}
    assert len(server.requests) == 1
    assert client.send_bulk(HI).messages == 1


@pytest.mark.parametrize("after_401", [False, True], ids=["first", "after a 401"])
@pytest.mark.parametrize(
    ("answer", "status", "wait"),
    [
        *((broken, None, None) for broken in ("reset", "close", b"nonsense\r\n\r\n")),
        *(((200, body), 200, None) for body in ({}, [], b"{x", {"token": ""}, {"token": 1}, {"token": "x\r\ny"})),
        *(((status, b""), status, None) for status in (204, 303, 408, 500)),
        ((503, b"<h1>Busy</h1>"), 503, None),
        ((503, {"errorCode": "Busy"}), 503, 3.0),
    ],
    ids=range(15),
)
def test_without_a_token_nothing_is_sent(serve, connect, wire, answer, status, wait, after_401):
    """Whatever became of a token's request, the messages were not sent, and that may be tried again."""
    answer = wire.http(*answer, "Retry-After: 3") if isinstance(answer, tuple) else answer
    before = [wire.http(200, {"token": "t"}), wire.http(401, b"")] if after_401 else []
    server = serve(*before, [answer, "close"])
    with pytest.raises(NotSentError, match="no token came") as caught:
        connect(server.url, **CREDENTIALS).send_bulk(HI)
    error = caught.value
    assert (error.status, error.retry_after, error.transient) == (status, wait, True)
    assert not error.may_have_been_sent
    assert len(server.requests) == len(before) + 1
    assert "hunter2" not in str(error)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, AuthenticationError), (403, AuthenticationError), (429, ThrottledError), (404, RefusedError)],
)
def test_a_token_that_is_refused_is_not_asked_for_again(serve, connect, wire, status, kind):
    """The error has the service's words without the secret, and nothing was sent."""
    words = {"errorCode": "InvalidCredentials", "errorMessage": f"hunter2é and {BASIC[6:]} are wrong"}
    server = serve(wire.http(status, words, "Retry-After: 3"))
    with pytest.raises(kind, match=re.escape(WITHHELD)) as caught:
        connect(server.url, **CREDENTIALS).send_bulk(HI)
    assert (caught.value.status, caught.value.code) == (status, "InvalidCredentials")
    assert caught.value.retry_after == (3.0 if kind is ThrottledError else None)
    assert not caught.value.may_have_been_sent
    assert len(server.requests) == 1


def test_a_refusal_hides_token_and_secret(serve, connect, wire):
    """The service may repeat what it was given, whichever request it answers, and a gateway's page escapes it.

    After a 401 it may name the token that it did not accept.
    """
    words = f"t0k3n/Of+60 of hunter2é, me:hunter2é ({BASIC[6:]}) is not enough"
    server = serve(
        wire.http(200, {"token": "first-token"}),
        wire.http(401, b""),
        wire.http(200, {"token": "t0k3n/Of+60"}),
        *(wire.http(403, {"errorMessage": said}) for said in ("first-token has expired", words)),
        *(wire.http(403, f"refused: {quote_plus(secret)}".encode()) for secret in ("hunter2é", "t0k3n/Of+60")),
    )
    client = connect(server.url, **CREDENTIALS)
    for _ in range(4):
        with pytest.raises(RefusedError, match=re.escape(WITHHELD)):
            client.send_bulk(HI)
