from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import AuthenticationError, RefusedError, ThrottledError, UnknownOutcomeError
from airflow_provider_sms.sandbox.client_advice import EFFECTS, SENDING, advice_for
from airflow_provider_sms.sandbox.faults import AUTHORS, KINDS, TARGETS, Fault
from airflow_provider_sms.sandbox.service import status_response
from airflow_provider_sms.service.errors import error_for
from airflow_provider_sms.service.transport import RawResponse

UNKNOWN = "as unknown, and never resend them without a decision."


def test_every_kind_has_its_lines():
    """Each kind of fault has its own effect and its own advice."""
    assert set(EFFECTS) == set(SENDING) == set(KINDS)
    assert len(set(EFFECTS.values())) == len(set(SENDING.values())) == len(KINDS)


@pytest.mark.parametrize("on", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_has_one_line(kind, on):
    """Each kind of fault has advice for each operation: one line that ends with a full stop."""
    line = advice_for(Fault(kind, on=on))
    assert line.endswith(".")
    assert "\n" not in line


@pytest.mark.parametrize("kind", ["drop_before", "drop_after", "truncated", "foreign", "delay"])
def test_messages_without_a_response_are_never_resent(kind):
    """A client that received no response of the contract must not resend the messages."""
    assert advice_for(Fault(kind)).endswith(UNKNOWN)


BODIES = (
    None,
    "",
    "upstream request timeout",
    "[]",
    '{"message": "Service Unavailable"}',
    '{"errorCode": "Busy"}',
    '{"ERRORS": [{"errorMessage": "Later"}, {"ErrorCode": "Busy"}]}',
    '{"errors": [], "errorCode": "Busy"}',
    '{"errors": [{"errorCode": 503}], "errorCode": "Busy"}',
)


@pytest.mark.parametrize("by", AUTHORS)
@pytest.mark.parametrize("body", BODIES)
def test_the_advice_is_what_this_packages_client_does(by, body):
    """For each status and author, the advice says unknown, later, renew or stop exactly where the client does that."""
    words = {
        UnknownOutcomeError: UNKNOWN,
        ThrottledError: "after the delay in Retry-After, send the same request again",
        AuthenticationError: "fetch a new token once",
        RefusedError: "stop sending, and fail",
    }
    for status in range(201, 600):
        fault = Fault("status", status=status, by=by, body=body)
        answer = RawResponse("bulkmessages", status, None, bytes(status_response(fault, "/v1/bulkmessages").body))
        error = type(error_for(answer, hidden=(), now=0.0))
        line = advice_for(fault)
        assert [kind for kind, said in words.items() if said in line] == [error], status


def test_a_service_that_lies_is_named_as_the_cause():
    """The advice blames a service that accepts a request and then denies it: no client can handle that."""
    for status in (400, 425, 429, 503):
        assert "must never say this" in advice_for(Fault("status", status=status, accepted=True))


@pytest.mark.parametrize(
    ("status", "by"),
    [(303, "service"), (408, "service"), (499, "gateway"), (500, "service"), (502, "gateway"), (503, "gateway")],
)
def test_what_proves_nothing_is_the_same_whether_or_not_it_was_accepted(status, by):
    """The advice rests on the response alone, because a client knows nothing else."""
    told = [advice_for(Fault("status", status=status, by=by, accepted=accepted)) for accepted in (False, True)]
    assert told[0] == told[1]
    assert told[0].endswith(UNKNOWN)


@pytest.mark.parametrize("on", ["balance", "authentication"])
def test_a_read_may_be_repeated(on):
    """Reading sends nothing, so a client repeats the request after a lost response, but not after a refusal."""
    lost = (Fault("drop_after", on=on), Fault("foreign", on=on))
    said = (Fault("status", on=on, status=status) for status in (303, 408, 429, 499, 503))
    for fault in (*lost, *said, Fault("status", on=on, status=503, by="gateway")):
        assert "again later, a limited number of times" in advice_for(fault)
    assert advice_for(Fault("status", on=on, status=403)).startswith("Fail")
