import pytest

from airflow_provider_sms.exceptions import NotSentError
from airflow_provider_sms.messages.message import Message
from airflow_provider_sms.service.elapsed import ending_by

HI = [Message("Hi Thandi", "27821234567")]


def test_a_request_that_might_outlast_its_limit_is_not_begun(serve, connect, wire, clock):
    """Whoever must know the outcome by a moment has it by then, or the request is not sent."""
    client = connect((server := serve(wire.ok)).url, clock=clock)
    with ending_by(clock.now + 3.9), pytest.raises(NotSentError, match="too little time was left") as caught:
        client.send_bulk(HI)
    assert (caught.value.transient, server.connections) == (True, 0)
    with ending_by(clock.now + 4.0):
        assert client.send_bulk(HI).messages == 1
    clock.now += 1000.0
    assert client.send_bulk(HI).messages == 1


def test_a_machine_that_slept_while_a_token_was_fetched_posts_nothing(serve, connect, wire, clock):
    """A claim that was good when the token was asked for may belong to others when it comes."""

    def sleep():
        # Not past the end of the token's own request, which would then have failed.
        clock.now += 3.0

    token = wire.http(200, {"token": "token-1", "schema": "JWT", "expiresInMinutes": 1440})
    server = serve([sleep, token], wire.ok)
    client = connect(server.url, clock=clock, client_id="me", client_secret="hunter2")
    with ending_by(clock.now + 6.0), pytest.raises(NotSentError, match="too little time was left"):
        client.send_bulk(HI)
    assert server.lines() == ["GET /v1/Authentication HTTP/1.1"]
    with ending_by(clock.now + 6.0):
        client.send_bulk(HI)
    assert server.lines()[1:] == ["POST /v1/bulkmessages HTTP/1.1"]
