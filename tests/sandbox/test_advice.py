from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import AuthenticationError, RefusedError, ThrottledError, UnknownOutcomeError
from airflow_provider_sms.sandbox.advice import EFFECTS, SENDING, advice
from airflow_provider_sms.sandbox.faults import KINDS, TARGETS, Fault
from airflow_provider_sms.service.errors import error_for
from airflow_provider_sms.service.transport import Answer

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


def test_the_lines_are_what_this_packages_client_does():
    """For each status, the line says unknown, later, renew or stop exactly where the client does so."""
    words = {
        UnknownOutcomeError: UNKNOWN,
        ThrottledError: "send the same request again after the time that Retry-After asks for",
        AuthenticationError: "fetch a new token once",
        RefusedError: "stop sending, and fail",
    }
    for status in range(201, 600):
        answer = Answer("bulkmessages", status, None, b"{}")
        error = type(error_for(answer, hidden=(), now=0.0))
        line = advice(Fault("status", status=status))
        assert [kind for kind, said in words.items() if said in line] == [error], status


def test_a_service_that_lies_cannot_be_met():
    """A service that accepts and then says that it did not is called what it is."""
    assert "must never answer so" in advice(Fault("status", status=429, accepted=True))
    assert advice(Fault("status", status=500, accepted=True)) == advice(Fault("status", status=500))


@pytest.mark.parametrize("on", ["balance", "authentication"])
def test_what_only_reads_may_be_asked_again(on):
    """Nothing can have been sent by these, so a lost answer is asked for again, and a refusal is not."""
    for fault in (Fault("drop_after", on=on), Fault("foreign", on=on), Fault("status", on=on, status=503)):
        assert "again later, a bounded number of times" in advice(fault)
    assert advice(Fault("status", on=on, status=403)).startswith("Fail")
