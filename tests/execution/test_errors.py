from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_sms.exceptions import (
    AuthenticationError,
    InputError,
    LedgerError,
    LedgerLostError,
    LedgerVersionError,
    NotSentError,
    OutageError,
    RefusedError,
    ThrottledError,
)
from airflow_provider_sms.execution.errors import FailedError, airflow_errors, describe, is_permanent
from airflow_provider_sms.execution.send import failure
from airflow_provider_sms.ledger.model import TextedTwice
from airflow_provider_sms.reporting.row_counts import RowCounts
from airflow_provider_sms.reporting.summary import Sums


@pytest.mark.parametrize(
    ("error", "permanent"),
    [
        (InputError(""), True),
        (AuthenticationError("", status=401), True),
        (RefusedError("", status=400), True),
        (RefusedError("", status=403), True),
        (LedgerVersionError(), True),
        (LedgerLostError(""), True),
        (OutageError(""), False),
        (RefusedError("", status=403, code="InsufficientCredits"), False),
        (RefusedError("", status=402, code="InsufficientCredits"), True),
        (NotSentError(""), False),
        (ThrottledError("", status=503), False),
        (LedgerError(""), False),
        (OSError(), False),
    ],
    ids=repr,
)
def test_retries_are_spent_on_what_may_pass_by_itself(error, permanent):
    """What only a person can mend fails without retries."""
    assert is_permanent(error) is permanent


@pytest.mark.parametrize(
    ("error", "cause", "raised"),
    [
        (InputError("message is empty"), None, AirflowFailException),
        (LedgerError("The ledger cannot be opened"), OSError("no such host"), AirflowException),
    ],
    ids=["mistake", "driver"],
)
def test_an_error_is_told_once(error, cause, raised):
    """A mistake is one message, and not two in a chain with the same words; the error of a driver stays behind it."""
    with pytest.raises(raised, match=str(error)) as caught, airflow_errors():
        raise error from cause
    assert caught.value.__cause__ is cause
    assert caught.value.__suppress_context__


def test_the_words_of_another_error_are_in_no_log(caplog):
    """They may quote a row; its type and place are shown."""
    number = "2782" + "0000001"
    with pytest.raises(AirflowException, match=r"^KeyError") as caught, airflow_errors():
        raise KeyError(number)
    assert caught.value.__cause__ is None
    assert ("27820000001" in caplog.text, "test_errors.py" in caplog.text) == (False, True)


def test_after_a_wait_an_error_denies_nothing_that_was_sent_before():
    """Words such as "nothing was sent" are about the time since; the end of a send has its own."""
    with (
        pytest.raises(AirflowException, match=r"^Nothing was sent\. This is about the time since"),
        airflow_errors(resumed=True),
    ):
        raise LedgerError("Nothing was sent")
    with pytest.raises(AirflowException, match=r"may have been sent$"), airflow_errors(resumed=True):
        raise FailedError("1 message may have been sent", transient=False)


@pytest.mark.parametrize(
    ("attempts", "where"),
    [(1, "(connection 'promo', host h:8443)"), (10, "(connection 'promo', host h:8443, 10 tries)")],
)
def test_an_error_of_the_service_names_the_connection(attempts, where):
    """And the host, and how often the request was made in vain; one whose place nobody noted has its own words."""
    error = NotSentError("not sent: Connection refused")
    assert describe(error) == "not sent: Connection refused"
    error.place, error.attempts = "connection 'promo', host h:8443", attempts
    assert describe(error) == f"not sent: Connection refused {where}"


def failed(counts=None, *, sums=None, error=None, campaign="spring", on_unknown="fail", ledger=None, **given):
    options, task = SimpleNamespace(on_unknown=on_unknown), SimpleNamespace(ledger_conn_id=ledger)
    run = SimpleNamespace(campaign=campaign, options=options, task=task)
    return failure(run, counts or RowCounts(), sums or Sums(), error, **{"stopped": False, **given})


def unknown(held, awaited=()):
    """Counts of messages that requests without an outcome hold."""
    return RowCounts(unknown=sum(held.values()), unsettled=held, awaited=frozenset(awaited))


TWICE = [TextedTwice(4, 12, is_sure=True, messages=3)]
HELD = RowCounts(unknown=1, not_sent=1, unsettled={5: 1}, awaited=frozenset({5}))


LOST = "{} messages in the ledger's {} may have been sent: the service's response was lost, or the"


@pytest.mark.parametrize(
    ("counts", "given", "transient", "words"),
    [
        # What is unknown needs a person, unless the next attempt sends it again.
        (unknown({5: 3, 3: 4}), {}, False, LOST.format(7, "requests 3, 5")),
        (unknown({5: 3, 3: 4}), {"on_unknown": "reconcile"}, False, LOST.format(7, "requests 3, 5")),
        (unknown({5: 3, 3: 4}), {"on_unknown": "resend"}, True, "The next attempt sends these again, at the risk of"),
        # What another process holds, or gave back, is left to the next attempt, beside what is lost.
        (unknown({4: 2, 5: 1}, {5}), {}, False, LOST.format(2, "request 4")),
        (unknown({4: 2, 5: 1}, {5}), {}, False, "1 message in the ledger's request 5 may have been sent: claimed by"),
        (RowCounts(accepted=9, not_sent=2), {}, True, "another process gave back 2 messages that it held. The next"),
        # What the service took nothing of, or twice, is for a person at once: a retry would hide it.
        (
            HELD,
            {"sums": Sums(none_taken=1)},
            False,
            "1 message not sent, since the service took nothing of a request (",
        ),
        (HELD, {"twice": TWICE}, False, "request 4, texted twice: 3 of its messages went out with request 12, too"),
        # An error says whether a retry helps; one that is not ours is named, not quoted. A stop is none.
        (unknown({3: 7}), {"error": NotSentError("no route")}, True, "no route"),
        (unknown({3: 7}), {"error": NotSentError("no route")}, True, LOST.format(7, "request 3")),
        (None, {"error": ValueError("27821234567")}, True, "Sending ended early: ValueError (see the log above)"),
        (RowCounts(not_sent=1), {"stopped": True}, True, "Sending was stopped; the requests in flight are recorded"),
    ],
)
def test_what_went_wrong_is_said_and_whether_a_retry_helps(counts, given, transient, words):
    """The end of a send says all that is wrong with it, and quotes nobody."""
    found = failed(counts, **given)
    assert (found.transient, words in str(found), "27821234567" in str(found)) == (transient, True, False)


def test_a_send_that_went_well_does_not_fail():
    """Neither sent messages nor those that the service left out make a task fail."""
    assert failed(RowCounts(accepted=9), sums=Sums(left_out=3)) is None


@pytest.mark.parametrize(
    ("options", "command"),
    [
        ({}, "unknown --campaign='spring sale' --read-balance, then airflow-sms resolve; or"),
        (
            {"ledger": "l", "campaign": "--spring", "on_unknown": "reconcile"},
            "unknown --campaign=--spring --read-balance --ledger-conn-id l, then airflow-sms resolve --ledger",
        ),
    ],
    ids=str,
)
def test_the_error_for_unknown_messages_names_the_commands_and_the_page(options, command):
    """They can be pasted: with the campaign's name, dashes and all, and the connection of a ledger not the usual.

    What the balance says is told in a few sentences: a line that names every request would be read by nobody.
    """
    told = [f"Request {number} was taken." for number in range(3, 9)]
    words = str(failed(unknown(dict.fromkeys(range(3, 9), 1)), told=told, **{"campaign": "spring sale", **options}))
    assert "Request 4 was taken. Request 5 was taken. They are not sent again. A person decides: with" in words
    assert f"airflow-sms {command}" in words
    assert "or on the campaign's page, under SMS in Airflow's navigation" in words
    assert ("on_unknown='reconcile'" in words) is ("on_unknown" not in options)
