from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import AuthenticationError, RefusedError, ThrottledError, UnknownOutcomeError
from airflow_provider_sms.sandbox.advice import EFFECTS, SENDING, advice
from airflow_provider_sms.sandbox.faults import AUTHORS, KINDS, TARGETS, Fault
from airflow_provider_sms.sandbox.service import status_response
from airflow_provider_sms.service.errors import error_for
from airflow_provider_sms.service.transport import RawResponse

UNKNOWN = "as unknown, and never send them again unasked."


def test_every_kind_has_its_lines():
    """What a fault does and what a client must do then is said of each kind, once."""
    assert set(EFFECTS) == set(SENDING) == set(KINDS)
    assert len(set(EFFECTS.values())) == len(set(SENDING.values())) == len(KINDS)


@pytest.mark.parametrize("on", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_has_one_line(kind, on):
    """Each kind of fault of each operation has a line, which is a sentence and no more than one line."""
    line = advice(Fault(kind, on=on))
    assert line.endswith(".")
    assert "\n" not in line


@pytest.mark.parametrize("kind", ["drop_before", "drop_after", "truncated", "foreign", "delay"])
def test_whose_answer_is_lost_was_perhaps_sent(kind):
    """Nothing that leaves a client without the contract's answer is to be sent again."""
    assert advice(Fault(kind)).endswith(UNKNOWN)


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
def test_the_lines_are_what_this_packages_client_does(by, body):
    """For each status, whoever writes it, the line says unknown, later, renew or stop exactly where the client does."""
    words = {
        UnknownOutcomeError: UNKNOWN,
        ThrottledError: "send the same request again after the time that Retry-After asks for",
        AuthenticationError: "fetch a new token once",
        RefusedError: "stop sending, and fail",
    }
    for status in range(201, 600):
        fault = Fault("status", status=status, by=by, body=body)
        answer = RawResponse("bulkmessages", status, None, bytes(status_response(fault, "/v1/bulkmessages").body))
        error = type(error_for(answer, hidden=(), now=0.0))
        line = advice(fault)
        assert [kind for kind, said in words.items() if said in line] == [error], status


def test_a_service_that_lies_cannot_be_met():
    """A service that accepts and then says that it did not is called what it is."""
    for status in (400, 425, 429, 503):
        assert "must never answer so" in advice(Fault("status", status=status, accepted=True))


@pytest.mark.parametrize(
    ("status", "by"),
    [(303, "service"), (408, "service"), (499, "gateway"), (500, "service"), (502, "gateway"), (503, "gateway")],
)
def test_what_proves_nothing_is_the_same_whether_or_not_it_was_accepted(status, by):
    """A client is told nothing that it could not know from the response alone."""
    told = [advice(Fault("status", status=status, by=by, accepted=accepted)) for accepted in (False, True)]
    assert told[0] == told[1]
    assert told[0].endswith(UNKNOWN)


@pytest.mark.parametrize("on", ["balance", "authentication"])
def test_what_only_reads_may_be_asked_again(on):
    """Nothing can have been sent by these, so a lost answer is asked for again, and a refusal is not."""
    lost = (Fault("drop_after", on=on), Fault("foreign", on=on))
    said = (Fault("status", on=on, status=status) for status in (303, 408, 429, 499, 503))
    for fault in (*lost, *said, Fault("status", on=on, status=503, by="gateway")):
        assert "again later, a bounded number of times" in advice(fault)
    assert advice(Fault("status", on=on, status=403)).startswith("Fail")
