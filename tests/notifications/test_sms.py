from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowException, task
from support.airflow import run_task
from support.versions import AIRFLOW

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.notifications.sms import SmsNotifier, parse_recipients, send_sms_notification

TOKEN = "sandbox-token-0123"
FIRST, SECOND = "27821234567", "27831234567"
DEADLINE = {
    "dag_run": {"dag_id": "nightly", "dag_run_id": "manual__1", "state": "running"},
    "deadline": {"id": "0a", "deadline_time": "2026-01-05T06:30:00Z"},
}
# Airflow's own words.
UNKNOWN = "AirflowRuntimeError: VARIABLE_NOT_FOUND"
MISSED = "Airflow: DAG nightly missed its deadline of 2026-01-05 06:30 UTC, run manual__1"


def context():
    return {"dag": None, "run_id": "manual__1", "ti": SimpleNamespace(dag_id="nightly", task_id="load", try_number=1)}


def called(notifier):
    """Call a notifier as Airflow calls a callback."""
    notifier(context())


def awaited(notifier):
    """Await a notifier as Airflow's triggerer does."""

    async def wait():
        notifier.context = context()
        await notifier

    asyncio.run(wait())


# What awaits a notifier is a deadline.
WAYS = pytest.mark.parametrize("run", [called, awaited])


@pytest.fixture
def fail(sms_default):
    """Run a task that fails in a real Airflow, with a notifier at the place that the test chooses."""

    def fail(*, retries=0, in_dag=None, **in_task):
        def raises():
            raise AirflowException("the load of this night failed")

        return run_task(lambda: task(task_id="load", **in_task)(raises)().operator, retries=retries, **in_dag or {})

    return fail


@pytest.fixture
def texts(sandbox):
    """Return the texts that arrived, with their numbers, in order."""
    return lambda: sandbox.state.accepted_messages


@pytest.fixture
def said(capfd, caplog):
    """Return all that was logged since the start of the test, wherever Airflow's version logs."""
    heard = []

    def said():
        heard.extend(capfd.readouterr())
        return "".join([*heard, caplog.text])

    return said


def test_a_failed_task_texts_who_is_on_call(fail, texts):
    """At each attempt each number gets its text once, whoever is given twice; the task fails as it would have."""
    notifier = SmsNotifier(to=[FIRST, f"+{SECOND}, {FIRST}"])
    ran = fail(retries=1, on_retry_callback=notifier, on_failure_callback=notifier)
    assert (ran.state, "the load of this night failed" in ran.log) == ("failed", True)
    told = [(number, text.partition(".load ")[2]) for number, text in texts()]
    words = [f"up for retry, try 1, run {ran.run_id}", f"failed, try 2, run {ran.run_id}"]
    assert told == [(number, each) for each in words for number in (FIRST, SECOND)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ti": {"state": None, "map_index": -1}}, "nightly.load failed, try 2"),
        ({"ti": {"state": "up_for_retry", "map_index": 0}}, "nightly.load[0] up for retry, try 2"),
        ({"ti": {"state": "success", "map_index": None}, "reason": "task_failure"}, "DAG nightly: task failure"),
        ({"reason": "timed_out"}, "DAG nightly: timed out"),
        ({}, "DAG nightly"),
    ],
    ids=["its process died", "mapped", "of a DAG with any task", "of a DAG without one", "of a DAG"],
)
def test_each_callback_has_a_text(sms_default, texts, given, said):
    """A task is named with its state and try, and a DAG with its reason, whatever else the context has."""
    ti = {"dag_id": "nightly", "task_id": "load", "try_number": 2}
    tasks = {name: SimpleNamespace(**ti, **given["ti"]) for name in given.keys() & {"ti"}}
    SmsNotifier(to=FIRST)({"dag": DAG("nightly", schedule=None), "run_id": "manual__1", **given, **tasks})
    assert texts() == [(FIRST, f"Airflow: {said}, run manual__1")]


def test_everything_but_numbers_of_parts_is_templated(fail, sandbox, monkeypatch, texts):
    """Text, people, connection and options come from templates, and numbers need not stand in the code."""
    monkeypatch.setenv("AIRFLOW_VAR_ON_CALL", f"{FIRST},{SECOND}")
    notifier = SmsNotifier(
        "{{ ti.task_id }}: {{ exception }}",
        to="{{ var.value.on_call }}",
        sms_conn_id="{{ 'sms' }}_default",
        send_options={"CampaignName": "{{ ti.task_id }}"},
    )
    fail(on_failure_callback=notifier)
    assert texts() == [(number, "load: the load of this night failed") for number in (FIRST, SECOND)]
    assert sandbox.state.requests[0].send_options == {"CampaignName": "load"}


@WAYS
def test_numbers_come_from_a_variable_if_the_context_has_none(sms_default, monkeypatch, texts, run):
    """``var.value`` is there although the context lacks it, as that of a deadline does, and may have a default."""
    monkeypatch.setenv("AIRFLOW_VAR_ON_CALL", FIRST)
    run(SmsNotifier("down", to=["{{ var.value.on_call }}", "{{ var.value.get('nobody', '27831234567') }}"]))
    assert texts() == [(FIRST, "down"), (SECOND, "down")]


def test_each_call_renders_its_own_text(sms_default, texts):
    """One notifier for many tasks does not repeat the text of the first."""
    notifier = SmsNotifier("{{ run_id }} failed", to="{{ number }}")
    for run_id, number in (("one", FIRST), ("two", SECOND)):
        notifier({"dag": None, "run_id": run_id, "number": number})
    assert texts() == [(FIRST, "one failed"), (SECOND, "two failed")]


def test_an_error_that_holds_half_a_character_is_texted(sms_default, texts):
    """Python names a file that is not UTF-8 with such halves, and nobody would learn that the task failed on it."""
    notifier = SmsNotifier("{{ error }}", to=FIRST)
    notifier({"dag": None, "error": FileNotFoundError("no file caf\udce9.csv")})
    assert texts() == [(FIRST, "no file caf?.csv")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_parts": 0}, "max_parts must be a whole number, at least 1, not 0"),
        ({"default_region": "XX"}, "default_region must be a country as in ISO 3166 alpha-2"),
    ],
    ids=str,
)
def test_what_no_template_renders_is_refused_when_the_dag_is_loaded(arguments, words):
    """And not when the alert is due."""
    with pytest.raises(InputError, match=words):
        SmsNotifier("down", to=FIRST, **arguments)


@pytest.mark.parametrize(
    ("arguments", "words", "arrived"),
    [({}, "success", [(FIRST, MISSED)]), ({"max_parts": 0}, "max_parts must be a whole number", [])],
    ids=["texts", "wrong argument"],
)
def test_a_missed_deadline_texts_from_the_triggerer(sms_default, texts, arguments, words, arrived):
    """Airflow's own trigger makes it with the arguments that it stored; a wrong one is found then, and named."""
    from airflow.sdk.definitions.deadline import AsyncCallback

    if AIRFLOW < (3, 2):
        from airflow.triggers.deadline import DeadlineCallbackTrigger as CallbackTrigger
    else:
        from airflow.triggers.callback import CallbackTrigger

    callback = AsyncCallback(SmsNotifier, kwargs={"to": FIRST, **arguments})
    stored = json.loads(json.dumps({**callback.kwargs, "context": DEADLINE}))
    trigger = CallbackTrigger(callback.path, stored)

    async def events():
        return [event.payload async for event in trigger.run()]

    *_, last = asyncio.run(events())
    assert (last["state"], words in str(last), texts()) == ("success" if arrived else "failed", True, arrived)


def test_a_long_text_is_cut(sms_default, sandbox):
    """It costs what was meant, whatever an error has to say; the alias is the notifier."""
    called(SmsNotifier("a" * 5000, to=FIRST))
    called(send_sms_notification("a" * 5000, to=FIRST, max_parts=1))
    assert [(message.parts, message.content[-4:]) for message in sandbox.state.accepted] == [(2, "a..."), (1, "a...")]


@pytest.mark.skipif(AIRFLOW < (3, 2), reason="Airflow before 3.2 has no deadlines with synchronous callbacks")
def test_a_missed_deadline_texts_from_an_executor(sms_default, texts):
    """As a synchronous callback of a deadline it texts once, not once when made and once when called."""
    from airflow.sdk.definitions.deadline import SyncCallback

    callback, log = SyncCallback(SmsNotifier, kwargs={"to": FIRST}), Mock()
    arguments = {**callback.kwargs, "context": DEADLINE}
    if AIRFLOW < (3, 3):
        from airflow.executors.workloads.callback import execute_callback_workload

        said = execute_callback_workload(SimpleNamespace(data={"path": callback.path, "kwargs": arguments}), log)
    else:
        from airflow.sdk.execution_time.callback_supervisor import execute_callback

        said = execute_callback(callback.path, arguments, "", None, log)
    assert said == (True, None)
    assert texts() == [(FIRST, MISSED)]


FAILURES = [
    ({"sms_conn_id": "nowhere"}, "Connection 'nowhere' does not exist, or it cannot be read"),
    ({"to": ["on call"]}, "to has no number that can be texted"),
    ({"to": "{{ none }}"}, "to has no number that can be texted"),
    ({"to": list(range(27820000000, 27820000101))}, "one request takes 1 to 100 messages"),
    ({"message": "{{ none_of_it or '' }}"}, "message is empty"),
    ({"message": "{% nope %}"}, "the template of message cannot be rendered: TemplateSyntaxError: Encountered unknown"),
    ({"message": "{{ x.y }}"}, "the template of message cannot be rendered: UndefinedError: 'x' is undefined"),
    ({"to": [FIRST, "{{ var.value.nobody }}"]}, f"the template of to cannot be rendered: {UNKNOWN}"),
]


@WAYS
@pytest.mark.parametrize(("arguments", "words"), FAILURES, ids=range(len(FAILURES)))
def test_what_is_wrong_is_logged_and_nothing_is_sent(sms_default, sandbox, said, run, arguments, words):
    """Any wrong argument is logged with the notifier's own message, and does not raise."""
    run(SmsNotifier(**{"message": "the house is on fire", "to": FIRST, **arguments}))
    assert f"The alert was not sent: {words}" in said()
    assert (sandbox.state.requests, FIRST in said(), "on fire" in said()) == ([], False, False)


@pytest.mark.parametrize(
    ("fault", "words", "requests"),
    [
        ({"kind": "drop_after"}, "may have been sent, and is not sent again: bulkmessages: sent, but no whole", 1),
        ({"kind": "status", "status": 500}, "may have been sent, and is not sent again", 1),
        ({"kind": "status", "status": 401}, "was not sent: bulkmessages: the service did not accept", 1),
        ({"kind": "status", "status": 503}, "was not sent: bulkmessages: the service did not process", 3),
    ],
    ids=["drop", "500", "401", "503"],
)
@WAYS
def test_a_service_that_fails_is_logged(sms_default, sandbox, said, run, fault, words, requests):
    """A request that may have been sent is never repeated, one that was certainly not is made three times."""
    sandbox.state.set_faults([{**fault, "persistent": True}])
    notifier = SmsNotifier("the house is on fire", to=[FIRST, SECOND])
    notifier._sleep = lambda _: None
    run(notifier)
    assert f"The alert {words}" in said()
    assert len(sandbox.state.requests) == requests
    assert not [secret for secret in (FIRST, SECOND, "on fire", TOKEN) if secret in said()]


def test_a_request_that_was_certainly_not_sent_is_repeated(sms_default, sandbox, texts):
    """How long the service asks for is waited, within bounds; in the triggerer, beside everything else in its loop."""
    faults = [
        {"kind": "status", "status": status, "retry_after": after} for status, after in ((429, "3"), (503, "3600"))
    ]
    sandbox.state.set_faults(faults)
    asked, went_on, waits = threading.Event(), threading.Event(), []

    def sleep(seconds):
        asked.set()
        waits.append((seconds, went_on.wait(10)))

    async def wait():
        notifier = SmsNotifier("down", to=FIRST)
        notifier._sleep = sleep
        alert = asyncio.ensure_future(notifier.async_notify(context()))
        await asyncio.to_thread(asked.wait, 10)
        went_on.set()
        await alert

    asyncio.run(wait())
    assert (waits, texts()) == ([(3.0, True), (10.0, True)], [(FIRST, "down")])


def test_a_number_that_cannot_be_read_is_left_out(sms_default, texts, said):
    """The others are texted; the log masks the number and gives the reason."""
    called(SmsNotifier("down", to=["0841234567", FIRST]))
    assert texts() == [(FIRST, "down")]
    assert "is left out: 0841*****67: no country code" in said()
    assert "0841234567" not in said()


@pytest.mark.parametrize(
    ("taken", "report", "shown"),
    [
        (1, {"OptedOuts": 1}, "'NoNetwork': 0, 'Duplicates': 0, 'OptedOuts': 1, 'Faults': 0"),
        (0, {"Duplicates": 2}, "'NoNetwork': 0, 'Duplicates': 2, 'OptedOuts': 0, 'Faults': 0"),
        (0, {"Blocked": 2}, "'Blocked': 2"),
    ],
)
def test_people_whom_the_service_left_out_are_counted(sms_default, sandbox, said, taken, report, shown):
    """A request that is taken in part, or not at all, is one error with all that the service counts; none says sent."""
    counts = dict.fromkeys(("Cost", "Messages", "Parts"), taken)
    body = {**counts, "RemainingBalance": 9, "EventId": 7, "ErrorReport": report}
    sandbox.state.set_faults([{"kind": "status", "status": 200, "body": json.dumps(body)}])
    called(SmsNotifier("down", to=[FIRST, SECOND]))
    words = (
        f"The service took {taken} of 2 messages of the alert: event 7, parts {taken}, cost {taken}. Its error report:"
    )
    assert (words in said(), shown in said(), "was sent to" in said()) == (True, True, False)


def test_an_error_that_is_not_ours_is_named_by_its_kind(sms_default, sandbox, said):
    """A message from outside the package may quote anything: the log has only its type and place."""
    sandbox.state.set_faults([{"kind": "status", "status": 503}])
    notifier = SmsNotifier("down", to=FIRST)
    notifier._sleep = Mock(side_effect=OSError(f"cannot reach {FIRST}"))
    called(notifier)
    assert "The alert was not sent: OSError in " in said()
    assert FIRST not in said()


def test_nothing_of_it_is_in_the_log_of_a_failed_task(fail, texts):
    """No number, text or token is in the task's log or stored fields; and a text may hold any braces."""
    ran = fail(on_failure_callback=SmsNotifier("{ {{ ti.task_id }} }{y}{{ '{x}' }}", to=[FIRST, "084"]))
    assert texts() == [(FIRST, "{ load }{y}{x}")]
    everything = f"{ran.log}{ran.xcoms}{ran.rendered}"
    assert "The alert was sent to 2782*****67" in everything
    assert not [secret for secret in (FIRST, "{y}{x}", TOKEN) if secret in everything]


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("+27 82 123 4567", [FIRST]),
        (27821234567, [FIRST]),
        ("082 123 4567, +27831234567", [FIRST, SECOND]),
        (["0821234567", 27831234567], [FIRST, SECOND]),
        (("0831234567,0821234567", "+27821234567"), [SECOND, FIRST]),
        ("0821234567,\n +27 (0)82 123 4567,, ", [FIRST]),
        (str(["082 123 4567", 27831234567, "(083) 123-4567"]), [FIRST, SECOND]),
        ('["0821234567", "0831234567"]', [FIRST, SECOND]),
        ("[]", []),
        ("", []),
        ([], []),
    ],
)
def test_numbers_are_read_as_people_write_them(to, expected):
    """One or several, as text with commas, a list or the text of one, each person once, in the order given."""
    assert (expected, []) == parse_recipients(to, "ZA")


@pytest.mark.parametrize("written", ["1e5", "'x'", "1,5"])
def test_an_alert_is_as_it_was_written_where_the_dag_renders_to_objects(fail, sandbox, texts, written):
    """Its text and its Send Options are read as no literal of Python."""
    options = {"SenderId": "12345", "CostCentre": "{{ params.value }} in all"}
    notifier = SmsNotifier(written, to=FIRST, send_options=options)
    fail(in_dag={"render_template_as_native_obj": True, "params": {"value": written}}, on_failure_callback=notifier)
    assert texts() == [(FIRST, written)]
    assert sandbox.state.requests[-1].send_options == {"SenderId": "12345", "CostCentre": f"{written} in all"}
