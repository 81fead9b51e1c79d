from __future__ import annotations

import pytest
from support.sending import claimant

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
from airflow_provider_sms.execution.failures import cause_of, describe, failure, is_permanent
from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.model import LAPSED, UNKNOWN, TextedTwice
from airflow_provider_sms.ledger.request_queries import RequestRow
from airflow_provider_sms.sending.counts import SendCounts


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


def test_a_failure_shows_the_cause_of_an_error_and_not_the_error():
    """Its words are in the failure already; a driver's error behind it tells more, and another one may quote a row."""
    driver = OSError("no such host")
    caused = LedgerError("The ledger cannot be opened")
    caused.__cause__ = driver
    assert [cause_of(each) for each in (caused, InputError("a wrong argument"), KeyError("27820000001"))] == [
        driver,
        None,
        None,
    ]


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


def test_a_send_that_went_well_does_not_fail():
    """Neither sent messages nor those that the service left out make a task fail."""
    assert (
        failure("spring", SendCounts(accepted=9, not_sent=1, partial=1), None, stopped=False, resend_unknown=False)
        is None
    )


@pytest.mark.parametrize(("resend", "permanent"), [(False, True), (True, False)])
def test_unknown_messages_fail_for_good_unless_they_are_resent(resend, permanent):
    """No retry can make known what is unknown; one that resends can get it through."""
    failed = failure(
        "spring", SendCounts(unknown=7, unknown_requests={3, 5}), None, stopped=False, resend_unknown=resend
    )
    assert failed.permanent is permanent
    assert "Campaign spring: 7 messages in the ledger's requests 3, 5 may have been sent" in failed.words


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({}, "airflow-sms unknown --campaign 'spring sale', then airflow-sms resolve"),
        ({"reconciles": True}, "airflow-sms unknown --campaign 'spring sale' --read-balance, then"),
        (
            {"ledger_conn_id": "sms_ledger"},
            "airflow-sms unknown --campaign 'spring sale' --ledger-conn-id sms_ledger, then",
        ),
    ],
    ids=str,
)
def test_the_error_for_unknown_messages_names_the_command_and_the_page(arguments, command):
    """The command can be pasted: it has the campaign's name, and the connection of a ledger that is not the usual."""
    counts = SendCounts(unknown=1, unknown_requests={3})
    words = failure("spring sale", counts, None, stopped=False, resend_unknown=False, **arguments).words
    assert f"It is not sent again. A person decides: with {command}" in words
    assert "or on the campaign's page, under SMS in Airflow's navigation" in words
    assert ("on_unknown='reconcile'" in words) is not arguments.get("reconciles", False)


def test_the_second_command_leads_to_the_same_ledger():
    """Without the connection, it would close another request of the same number in the configured ledger."""
    counts = SendCounts(unknown=1, unknown_requests={3})
    words = failure("spring", counts, None, stopped=False, resend_unknown=False, ledger_conn_id="sms_ledger").words
    assert "then airflow-sms resolve --ledger-conn-id sms_ledger; or" in words


def test_the_command_takes_a_name_with_a_dash_for_a_name():
    """Not for an option: the command can be pasted for every campaign."""
    counts = SendCounts(unknown=1, unknown_requests={3})
    words = failure("--spring", counts, None, stopped=False, resend_unknown=False).words
    assert "airflow-sms unknown --campaign=--spring, then" in words


def test_one_message_is_said_in_the_singular():
    """Whatever became of it."""
    as_before = {"stopped": False, "resend_unknown": True}
    refused = failure("spring", SendCounts(none_taken=1), None, **as_before).words
    assert "1 message is not sent, since the service took nothing of its request (" in refused
    lost = failure("spring", SendCounts(unknown=1, unknown_requests={3}), None, **as_before).words
    assert "1 message in the ledger's request 3 may have been sent" in lost
    assert "The next attempt sends it again" in lost


def test_groups_of_which_nobody_was_taken_have_no_table():
    """The advice is about the groups at the service, and names neither a source nor a list of suppressed numbers."""
    counts = SendCounts(none_taken=1, error_report={"OptedOuts": 3})
    failed = failure("spring", counts, None, stopped=False, resend_unknown=False, to_groups=True)
    assert failed.permanent is True
    assert failed.words == (
        "Campaign spring: the text is not sent, since the service took nothing of its request (OptedOuts 3 in its "
        "error reports). Clearing the task sends it again, which helps only once the reason is gone: check at the "
        "service that the groups have members"
    )


def test_what_another_task_has_not_recorded_is_worth_a_retry():
    """The error names the other attempts, and does not say that a response was lost, which nobody knows."""
    other = claimant(2, dag_id="news", task_id="send", run_id="monday", map_index=3, host="worker-2")
    counts = SendCounts(unknown=7, unrecorded={5: 3, 3: 2, 9: 2})
    failed = failure(
        "spring", counts, None, stopped=False, resend_unknown=False, claimants={3: other, 5: other, 9: claimant()}
    )
    assert failed.permanent is False
    assert failed.words == (
        "Campaign spring: 7 messages are claimed by another process that has recorded no outcome: requests 3, 5 by "
        "attempt 2 of task send of DAG news, run monday, map index 3, on host worker-2; request 9 by attempt 1 of task "
        "t of DAG d, run r, on host h. They may have been sent. The next attempt finds the outcome, or treats requests "
        "without one by then as unknown"
    )


def test_what_is_lost_and_what_is_unrecorded_are_told_apart():
    """Each with its own count; the retry that one is worth ends without the other's being guessed."""
    counts = SendCounts(unknown=3, unknown_requests={4}, unrecorded={5: 1})
    failed = failure("spring", counts, None, stopped=False, resend_unknown=False)
    assert failed.permanent is False
    assert "2 messages in the ledger's request 4 may have been sent: the sending process ended or" in failed.words
    assert "1 message is claimed by another process that has recorded no outcome: request 5 by an" in failed.words


@pytest.mark.parametrize(
    "counts",
    [
        SendCounts(unknown=1, unrecorded={5: 1}, none_taken=1),
        SendCounts(unknown=1, unrecorded={5: 1}, texted_twice=[TextedTwice(4, 12, is_sure=True, messages=3)]),
    ],
    ids=["none taken", "texted twice"],
)
def test_what_needs_a_person_needs_one_at_once(counts):
    """A retry would hide it, or be wasted."""
    assert failure("spring", counts, None, stopped=False, resend_unknown=False).permanent is True


def test_an_error_and_unknown_messages_are_both_said():
    """The end of a send says all that is wrong with it."""
    failed = failure("spring", SendCounts(unknown=7), NotSentError("no route"), stopped=False, resend_unknown=False)
    assert (failed.permanent, "no route" in failed.words, "7 messages" in failed.words) == (False, True, True)


def test_a_stopped_send_can_be_retried():
    """A task that was told to stop goes on in its next try."""
    assert failure("spring", SendCounts(), None, stopped=True, resend_unknown=False).permanent is False


def test_an_error_that_is_not_ours_is_named_not_quoted():
    """The words of a foreign error may hold a number."""
    failed = failure("spring", SendCounts(), ValueError("27821234567"), stopped=False, resend_unknown=False)
    assert ("27821234567" in failed.words, "ValueError" in failed.words) == (False, True)


def test_people_who_were_texted_twice_fail_the_task_by_request():
    """It is the one thing that never passes in silence."""
    tally = SendCounts(accepted=9, texted_twice=[TextedTwice(4, 12, is_sure=True, messages=3)])
    failed = failure("spring", tally, None, stopped=False, resend_unknown=False)
    assert (failed.permanent, "texted twice" in failed.words, "went out with request 12, too" in failed.words) == (
        True,
        True,
        True,
    )


def told(verdict, words):
    return KeptEvidence(verdict, words, 1_700_000_000.0)


def lost(request_id, evidence=None, messages=1, reason="no response in time"):
    """A request as the ledger has it."""
    times, task = (0.0, 1.0), ("d", "t", "r", -1)
    row = RequestRow(request_id, "spring", "bulk", UNKNOWN, messages, None, messages, *times, None, reason, *task, 1)
    return row._replace(evidence=evidence)


def words_of(*requests, rows=None):
    counts = SendCounts(unknown=rows or len(requests), unknown_requests={each.request_id for each in requests})
    return failure("spring", counts, None, stopped=False, resend_unknown=False, requests=requests).words


def test_the_failure_says_what_the_balance_says():
    """Once for requests that share a sentence, undecided ones among them."""
    both = told("charged", "The balance fell by 6: requests 3 and 5 were taken.")
    doubt = told("undecided", "No balance is known before it.")
    assert (
        "the service's response was lost. The balance fell by 6: requests 3 and 5 were taken. No balance is known "
        "before it. They are not sent again"
    ) in words_of(lost(3, both), lost(5, both), lost(7), lost(8, doubt))


@pytest.mark.parametrize("evidence", [None, told("undecided", "")])
def test_without_evidence_the_failure_is_as_ever(evidence):
    """A post-paid account gives none."""
    assert "the service's response was lost. It is not sent again" in words_of(lost(3, evidence))


def test_of_a_process_that_ended_nobody_says_that_a_response_was_lost():
    """Whether it was posted at all is not known, as the ledger says."""
    words = words_of(lost(3), lost(5, reason=LAPSED))
    assert "may have been sent: the sending process ended or lost the response. They are not" in words


def test_only_messages_of_the_table_are_counted():
    """Of a request, the table may have a few messages only."""
    words = words_of(*(lost(each, messages=100) for each in range(1, 5)), rows=40)
    assert "Campaign spring: 40 messages in the ledger's requests 1, 2, 3, 4 may have been sent" in words


def test_the_failure_has_three_sentences_of_the_balance_at_most():
    """A log line that names every request would be read by nobody; it says where all of them are."""
    requests = [lost(number, told("charged", f"Request {number} was taken.")) for number in range(1, 6)]
    found = words_of(*requests)
    assert "Request 3 was taken. And 2 more: see airflow-sms unknown. They are" in found
    assert "more: see" not in words_of(*requests[:3])
