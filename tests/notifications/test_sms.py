from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace

import pytest
from support.deadlines import execute, trigger_of
from support.versions import AIRFLOW, EXECUTES_CALLBACKS

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.notifications.sms import SmsNotifier, parse_recipients, send_sms_notification

TOKEN = "sandbox-token-0123"
FIRST, SECOND = "27821234567", "27831234567"
DEADLINE = {
    "dag_run": {"dag_id": "nightly", "dag_run_id": "manual__1", "state": "running"},
    "deadline": {"id": "0a", "deadline_time": "2026-01-05T06:30:00Z"},
}
# Airflow's own words.
NO_VARIABLE = "AirflowRuntimeError: VARIABLE_NOT_FOUND"
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


def waits_of(notifier):
    """Call a notifier, and return the seconds that it would have waited between its requests."""
    waits = []
    notifier._sleep = waits.append
    called(notifier)
    return waits


# What awaits a notifier is a deadline.
WAYS = pytest.mark.parametrize("run", [called, awaited])


def test_a_failed_task_texts_who_is_on_call(fail, texts):
    """Each number gets the text once, whoever is given twice; the task fails as it would have."""
    ran = fail(on_failure_callback=SmsNotifier(to=[FIRST, f"+{SECOND}, {FIRST}"]))
    assert (ran.state, "the load of this night failed" in ran.log) == ("failed", True)
    (first, second) = texts()
    expected = f".load failed, try 1, run {ran.run_id}"
    assert [(number, text.endswith(expected)) for number, text in (first, second)] == [(FIRST, True), (SECOND, True)]


def test_each_attempt_says_which_it_is(fail, texts):
    """The texts of a retry and of the failure differ by the attempt."""
    notifier = SmsNotifier(to=FIRST)
    fail(retries=1, on_retry_callback=notifier, on_failure_callback=notifier)
    words = [text.partition(", run")[0].partition(".load ")[2] for _, text in texts()]
    assert words == ["up for retry, try 1", "failed, try 2"]


def test_a_failed_dag_texts_who_is_on_call(fail, texts):
    """As the callback of a DAG it says why the DAG failed."""
    ran = fail(in_dag={"dag_id": "nightly_dag", "on_failure_callback": SmsNotifier(to=FIRST)})
    assert texts() == [(FIRST, f"Airflow: DAG nightly_dag: task failure, run {ran.run_id}")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ti": {"state": None, "map_index": -1}}, "nightly.load failed, try 2"),
        ({"ti": {"state": "up_for_retry", "map_index": 0}}, "nightly.load[0] up for retry, try 2"),
        ({"ti": {"state": "success", "map_index": None}, "reason": "task_failure"}, "DAG nightly: task failure"),
        ({}, "DAG nightly"),
    ],
    ids=["its process died", "mapped", "of a DAG with any task", "of a DAG"],
)
def test_each_callback_has_a_text(sms_default, texts, given, said):
    """A task is named with its state and try, and a DAG with its reason, whatever else the context has."""
    from airflow.providers.common.compat.sdk import DAG

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


def test_a_long_text_is_cut(sms_default, sandbox):
    """It costs what was meant, whatever an error has to say."""
    called(SmsNotifier("a" * 5000, to=FIRST))
    called(SmsNotifier("a" * 5000, to=FIRST, max_parts=1))
    assert [(message.parts, message.content[-4:]) for message in sandbox.state.accepted] == [(2, "a..."), (1, "a...")]


@pytest.mark.parametrize("region", ["ZA", "za"])
def test_national_numbers_are_completed(sms_default, texts, region):
    """``default_region`` is the country of those without a country code."""
    called(SmsNotifier("down", to="082 123 4567", default_region=region))
    assert texts() == [(FIRST, "down")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_parts": 0}, "max_parts must be a whole number, at least 1, not 0"),
        ({"max_parts": "2"}, "max_parts must be a whole number, at least 1, not '2'"),
        ({"default_region": "XX"}, "default_region must be a country as in ISO 3166 alpha-2"),
    ],
    ids=str,
)
def test_what_no_template_renders_is_refused_when_the_dag_is_loaded(arguments, words):
    """And not when the alert is due."""
    with pytest.raises(InputError, match=words):
        SmsNotifier("down", to=FIRST, **arguments)


def test_a_missed_deadline_texts_from_the_triggerer(sms_default, texts):
    """Airflow's own trigger runs it for a missed deadline, with the arguments that Airflow stored."""
    from airflow.sdk.definitions.deadline import AsyncCallback

    trigger = trigger_of(AsyncCallback(SmsNotifier, kwargs={"to": FIRST}), DEADLINE)

    async def events():
        return [event.payload["state"] async for event in trigger.run()]

    assert asyncio.run(events()) == ["running", "success"]
    assert texts() == [(FIRST, MISSED)]


def test_a_wrong_argument_of_a_deadline_is_found_when_it_is_missed(sms_default, texts):
    """Airflow makes the notifier only then: the callback fails, and nobody is texted."""
    from airflow.sdk.definitions.deadline import AsyncCallback

    trigger = trigger_of(AsyncCallback(SmsNotifier, kwargs={"to": FIRST, "max_parts": 0}), DEADLINE)

    async def events():
        return [event.payload async for event in trigger.run()]

    *_, last = asyncio.run(events())
    assert (last["state"], "max_parts must be a whole number" in str(last)) == ("failed", True)
    assert texts() == []


@pytest.mark.skipif(not EXECUTES_CALLBACKS, reason="Airflow before 3.2 has no deadlines with synchronous callbacks")
def test_a_missed_deadline_texts_from_an_executor(sms_default, texts):
    """As a synchronous callback of a deadline it texts once, not once when made and once when called."""
    from airflow.sdk.definitions.deadline import SyncCallback

    assert execute(SyncCallback(SmsNotifier, kwargs={"to": FIRST}), DEADLINE) == (True, None)
    assert texts() == [(FIRST, MISSED)]


def test_it_does_not_hold_up_the_triggerer(sms_default, sandbox, texts):
    """While it waits for the service, everything else in the event loop goes on."""
    sandbox.state.set_faults([{"kind": "status", "status": 503}])
    asked, went_on, waits = threading.Event(), threading.Event(), []

    def sleep(_):
        asked.set()
        waits.append(went_on.wait(10))

    async def wait():
        notifier = SmsNotifier("down", to=FIRST)
        notifier._sleep = sleep
        alert = asyncio.ensure_future(notifier.async_notify(context()))
        await asyncio.to_thread(asked.wait, 10)
        went_on.set()
        await alert

    asyncio.run(wait())
    assert (waits, texts()) == ([True], [(FIRST, "down")])


FAILURES = {
    "no connection": (
        {"sms_conn_id": "nowhere"},
        "Connection 'nowhere' does not exist, or it cannot be read (is its JSON valid?)",
    ),
    "no number": ({"to": "on call"}, "to has no number that can be texted"),
    "nobody": ({"to": []}, "to has no number that can be texted"),
    "none": ({"to": None}, "to is None: pass one number or several, as a list or as text with commas"),
    "none by a template": ({"to": "{{ none }}"}, "to is None: pass one number or several"),
    "too many": (
        {"to": [27820000000 + n for n in range(101)]},
        "to has 101 numbers, and an alert goes to at most 100: for more people use BulkSmsOperator",
    ),
    "no text": ({"message": "{{ none_of_it or '' }}"}, "message is empty"),
    "wrong template": (
        {"message": "{% nope %}"},
        "the template of message cannot be rendered: TemplateSyntaxError: Encountered unknown tag 'nope'.",
    ),
    "no such value": (
        {"message": "{{ nothing.task_id }}"},
        "the template of message cannot be rendered: UndefinedError: 'nothing' is undefined",
    ),
    "no such variable": (
        {"to": [FIRST, "{{ var.value.nobody }}"]},
        f"the template of to cannot be rendered: {NO_VARIABLE}",
    ),
}


@WAYS
@pytest.mark.parametrize(("arguments", "words"), FAILURES.values(), ids=FAILURES)
def test_what_is_wrong_is_logged_and_nothing_is_sent(sms_default, sandbox, said, run, arguments, words):
    """Any wrong argument is logged with the notifier's own message, and does not raise."""
    run(SmsNotifier(**{"message": "the house is on fire", "to": FIRST, **arguments}))
    assert f"The alert was not sent: {words}" in said()
    assert (sandbox.state.requests, FIRST in said(), "on fire" in said()) == ([], False, False)


@pytest.mark.parametrize(
    ("fault", "words", "requests"),
    [
        (
            {"kind": "drop_after"},
            "The alert may have been sent, and is not sent again: bulkmessages: sent, but no whole response came",
            1,
        ),
        ({"kind": "status", "status": 500}, "The alert may have been sent, and is not sent again", 1),
        ({"kind": "truncated"}, "The alert may have been sent, and is not sent again", 1),
        ({"kind": "delay", "seconds": 5.0}, "The alert may have been sent, and is not sent again", 1),
        ({"kind": "status", "status": 401}, "The alert was not sent: bulkmessages: the service did not accept", 1),
        ({"kind": "status", "status": 403}, "The alert was not sent: bulkmessages: the service refused", 1),
        ({"kind": "status", "status": 503}, "The alert was not sent: bulkmessages: the service did not process", 3),
    ],
    ids=["drop", "500", "truncated", "late", "401", "403", "503"],
)
@WAYS
def test_a_service_that_fails_is_logged(sms_default, sandbox, said, run, fault, words, requests):
    """A request that may have been sent is never repeated, one that was certainly not is made three times."""
    sms_default(extra={"timeout": 1.0 if "seconds" in fault else 30.0})
    sandbox.state.set_faults([{**fault, "persistent": True}])
    notifier = SmsNotifier("the house is on fire", to=[FIRST, SECOND])
    notifier._sleep = lambda _: None
    run(notifier)
    assert words in said()
    assert len(sandbox.state.requests) == requests
    assert not [secret for secret in (FIRST, SECOND, "on fire", TOKEN) if secret in said()]


def test_a_token_that_is_refused_says_what_to_do(sms_default, said):
    """The log says where the right one belongs."""
    sms_default(password="another-token-0123")
    called(SmsNotifier("down", to=FIRST))
    assert "the bearer token is missing or wrong. Put valid credentials into connection 'sms_default'" in said()


def test_the_connection_whose_token_is_refused_is_named_as_rendered(sms_sandbox, airflow_home, said):
    """The template of its id tells nobody which connection was used."""
    sms_sandbox.connect("sms_alerts", password="another-token-0123")
    called(SmsNotifier("down", to=FIRST, sms_conn_id="{{ 'sms' }}_alerts"))
    assert "Put valid credentials into connection 'sms_alerts'" in said()


@pytest.mark.skipif(AIRFLOW < (3, 2), reason="Airflow 3.1 cannot read such a connection, which the log then says")
@WAYS
def test_an_extra_that_is_no_object_is_named(airflow_home, sandbox, monkeypatch, said, run):
    """Where the extra of a connection is a list, the log says what it must be, from within an event loop, too."""
    fields = {"conn_type": "sms", "host": sandbox.base_url, "password": TOKEN, "extra": "[1]"}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LIST", json.dumps(fields))
    run(SmsNotifier("down", to=FIRST, sms_conn_id="sms_list"))
    assert "The alert was not sent: Connection 'sms_list': extra must be an object of JSON" in said()


def test_a_request_that_was_certainly_not_sent_is_repeated(sms_default, sandbox, texts):
    """A service that is away for moments gets the alert all the same; how long it asks for is waited, within bounds."""
    sandbox.state.set_faults(
        [
            {"kind": "status", "status": 429, "retry_after": "3"},
            {"kind": "status", "status": 503, "retry_after": "3600"},
        ]
    )
    assert (waits_of(SmsNotifier("down", to=FIRST)), texts()) == ([3.0, 10.0], [(FIRST, "down")])


def test_a_service_that_is_not_there_is_tried_three_times(sms_default, said):
    """A refused connection is known to be unsent, and the waits are short: the task's process ends after them."""
    sms_default(host="http://127.0.0.1:9/v1")
    waits = waits_of(SmsNotifier("down", to=FIRST))
    assert "The alert was not sent: bulkmessages: not sent: Connection refused" in said()
    assert [0.0 <= wait <= longest for wait, longest in zip(waits, (1.0, 2.0), strict=True)] == [True, True]


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


@WAYS
def test_what_was_sent_is_logged_without_anyones_data(sms_default, said, texts, run):
    """The log says who was texted, masked, and what it cost: no number, text or token."""
    run(SmsNotifier("the house is on fire", to=[FIRST, SECOND]))
    assert "The alert was sent to 2782*****67, 2783*****67: event " in said()
    assert len(texts()) == 2
    assert not [secret for secret in (FIRST, SECOND, "on fire", TOKEN) if secret in said()]


def test_nothing_of_it_is_in_the_log_of_a_failed_task(fail, texts):
    """Neither Airflow nor the notifier shows a number, the text or the token in the task's log or stored fields."""
    ran = fail(on_failure_callback=SmsNotifier("the house is on fire", to=[FIRST, "084"]))
    assert texts() == [(FIRST, "the house is on fire")]
    everything = f"{ran.log}{ran.xcoms}{ran.rendered}"
    assert "The alert was sent to 2782*****67" in everything
    assert not [secret for secret in (FIRST, "on fire", TOKEN) if secret in everything]


def test_an_alert_that_fails_leaves_the_failure_of_the_task(fail):
    """A notifier that cannot text changes neither the task's state nor the error that its log ends with."""
    ran = fail(on_failure_callback=SmsNotifier(to=FIRST, sms_conn_id="nowhere"))
    assert ran.state == "failed"
    assert "the load of this night failed" in ran.log
    assert "The alert was not sent: Connection 'nowhere' does not exist" in ran.log
    assert "Failed to run task callback" not in ran.log


def test_an_error_that_is_not_ours_is_named_by_its_kind(sms_default, said):
    """A message from outside the package may quote anything: the log has only its type and place."""

    def raises(_):
        raise OSError(f"cannot reach {FIRST}")

    sms_default(host="http://127.0.0.1:9/v1")
    notifier = SmsNotifier("down", to=FIRST)
    notifier._sleep = raises
    called(notifier)
    assert "The alert was not sent: OSError in test_sms.py, line " in said()
    assert FIRST not in said()


def test_the_name_that_airflows_providers_use():
    """A notifier has an alias that reads like a function."""
    assert send_sms_notification is SmsNotifier


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


@pytest.mark.parametrize(
    ("to", "rejected"), [("0821234567", "0821234567"), ("on call", "on call"), ([None], "None"), ("12", "12")]
)
def test_a_number_that_cannot_be_read_is_returned_with_its_reason(to, rejected):
    """It does not keep the others from being read."""
    numbers, ((written, reason),) = parse_recipients([FIRST, to] if isinstance(to, str) else [FIRST, *to], None)
    assert ([FIRST], rejected, True) == (numbers, written, bool(reason))


def test_an_alert_may_hold_any_braces(fail, texts):
    """An alert has no columns; what a template renders may be an error's own words."""
    fail(on_failure_callback=SmsNotifier("{ {{ ti.task_id }} }{y}{{ '{x}' }}", to=FIRST))
    assert texts() == [(FIRST, "{ load }{y}{x}")]


@pytest.mark.parametrize("written", ["1e5", "'x'", "1,5"])
def test_an_alert_is_as_it_was_written_where_the_dag_renders_to_objects(fail, sandbox, texts, written):
    """Its text and its Send Options are read as no literal of Python."""
    options = {"SenderId": "12345", "CostCentre": "{{ params.value }} in all"}
    notifier = SmsNotifier(written, to=FIRST, send_options=options)
    fail(in_dag={"render_template_as_native_obj": True, "params": {"value": written}}, on_failure_callback=notifier)
    assert texts() == [(FIRST, written)]
    assert sandbox.state.requests[-1].send_options == {"SenderId": "12345", "CostCentre": f"{written} in all"}
