from __future__ import annotations

import os
from datetime import datetime, timezone

import pytest

PEOPLE = [{"destination": "27820000001", "name": "Thandi"}, {"destination": "27820000002", "name": "Pieter"}]
EVERYBODY = {"27820000001": ["Hi Thandi"], "27820000002": ["Hi Pieter"]}
ELSEWHERE = '{"conn_type": "sms", "host": "sms.invalid", "password": "a-real-token"}'
MONDAY, TUESDAY = (datetime(2026, 1, day, tzinfo=timezone.utc) for day in (5, 6))


@pytest.fixture
def make_dag():
    """Make a DAG with one task that texts people."""
    from airflow.providers.common.compat.sdk import DAG

    from airflow_provider_sms.operators.sms import BulkSmsOperator

    def make_dag(dag_id="reminders", **arguments):
        with DAG(dag_id, schedule=None) as dag:
            BulkSmsOperator(task_id="text", **{"source": PEOPLE, "message": "Hi {name}", **arguments})
        return dag

    return make_dag


class TestRun:
    """A DAG is run, in a metadata database of the test run."""

    def test_everybody_is_texted_once(self, sms_sandbox, make_dag):
        """A DAG texts the sandbox, and running it again, as after a clear, texts nobody."""
        first, again = sms_sandbox.run(make_dag()), sms_sandbox.run(make_dag())
        assert sms_sandbox.texts() == EVERYBODY
        assert (first.state, first.states, first.run_id) == ("success", {"text": "success"}, again.run_id)
        assert [each.returned["text"]["already_sent"] for each in (first, again)] == [0, 2]

    @pytest.mark.parametrize("time", [1, 2])
    def test_each_test_begins_anew(self, sms_sandbox, make_dag, time):
        """A run of the same DAG and date in an earlier test, with its own ledger, does not get in the way."""
        assert sms_sandbox.run(make_dag(), logical_date=MONDAY).returned["text"]["accepted"] == 2
        assert sms_sandbox.texts() == EVERYBODY

    @pytest.mark.parametrize("campaign", [None, "reminders-{{ ds }}"])
    def test_another_date_is_another_run(self, sms_sandbox, make_dag, campaign):
        """A campaign for each run texts again on the next day; so does one that is named after the date."""
        runs = [sms_sandbox.run(make_dag(campaign=campaign), logical_date=day) for day in (MONDAY, TUESDAY)]
        assert [run.returned["text"]["accepted"] for run in runs] == [2, 2]

    def test_the_configuration_reaches_the_dag(self, sms_sandbox, make_dag):
        """The run's configuration is there for templates."""
        dag = make_dag(message="Hi {name}, " + "{{ dag_run.conf['place'] }}")
        sms_sandbox.run(dag, conf={"place": "Durban"})
        assert sms_sandbox.texts()["27820000001"] == ["Hi Thandi, Durban"]

    def test_a_run_that_fails_fails_the_test(self, sms_sandbox, make_dag):
        """Whoever expects success learns which task failed."""
        sms_sandbox.fail_next("drop_after")
        with pytest.raises(AssertionError, match=r"reminders ended as failed, not as success.*'text': 'failed'"):
            sms_sandbox.run(make_dag())

    def test_a_failure_can_be_expected(self, sms_sandbox, make_dag):
        """A lost response fails the run, leaves its people unknown, and a second run does not text them again."""
        sms_sandbox.fail_next("drop_after")
        for _ in range(2):
            assert sms_sandbox.run(make_dag(), expected="failed").returned["text"]["unknown"] == 2
        assert sms_sandbox.texts() == EVERYBODY
        with pytest.raises(AssertionError, match="ended as success, not as failed"):
            sms_sandbox.run(make_dag("others"), expected="failed")

    def test_a_mapped_task_has_lists(self, sms_sandbox):
        """States and summaries of a mapped task stand in the order of its map indexes."""
        from airflow.providers.common.compat.sdk import DAG

        from airflow_provider_sms.operators.sms import BulkSmsOperator

        with DAG("mapped", schedule=None) as dag:
            BulkSmsOperator.partial(task_id="text", message="Hi {name}").expand(source=[PEOPLE[:1], PEOPLE])
        result = sms_sandbox.run(dag)
        assert result.states == {"text": ["success", "success"]}
        assert [each["rows"] for each in result.returned["text"]] == [1, 2]

    def test_a_connection_to_a_service_is_refused(self, sms_sandbox, make_dag, monkeypatch):
        """A task that would reach a real account does not run, until its connection leads to the sandbox."""
        monkeypatch.setenv("AIRFLOW_CONN_SMS_MARKETING", ELSEWHERE)
        with pytest.raises(ValueError, match=r"'sms_marketing' does not lead to the sandbox"):
            sms_sandbox.run(make_dag(sms_conn_id="sms_marketing"))
        sms_sandbox.connect("sms_marketing")
        sms_sandbox.run(make_dag(sms_conn_id="sms_marketing"))
        assert sms_sandbox.texts() == EVERYBODY

    @pytest.mark.parametrize("owner", ["dag", "task"])
    def test_a_notifier_of_another_service_is_refused(self, sms_sandbox, make_dag, monkeypatch, owner):
        """A callback that would text a real person counts, too."""
        from airflow_provider_sms.notifications.sms import SmsNotifier

        monkeypatch.setenv("AIRFLOW_CONN_SMS_ALERTS", ELSEWHERE)
        dag = make_dag()
        notifier = SmsNotifier(message="failed", to=["27820000009"], sms_conn_id="sms_alerts")
        (dag if owner == "dag" else dag.get_task("text")).on_failure_callback = [notifier]
        with pytest.raises(ValueError, match="'sms_alerts' does not lead to the sandbox"):
            sms_sandbox.run(dag)

    def test_a_connection_of_a_template_is_refused(self, sms_sandbox, make_dag):
        """Where a template leads is not known before the run."""
        with pytest.raises(ValueError, match="is a template"):
            sms_sandbox.run(make_dag(sms_conn_id="sms_{{ params.account }}"))


class TestRunTask:
    """One task is executed, without Airflow's database."""

    def test_it_returns_what_the_task_returns(self, sms_sandbox, make_dag):
        """The summary comes back, and a second call texts nobody."""
        counts = [sms_sandbox.run_task(make_dag().get_task("text"))["accepted"] for _ in range(2)]
        assert counts == [2, 0]
        assert sms_sandbox.texts() == EVERYBODY

    def test_a_dry_run_can_come_first(self, sms_sandbox, make_dag):
        """A dry run leaves no trace that the send after it would have to find."""
        sms_sandbox.run_task(make_dag(dry_run=True).get_task("text"))
        assert sms_sandbox.texts() == {}
        assert sms_sandbox.run_task(make_dag().get_task("text"))["accepted"] == 2

    def test_templates_are_rendered(self, sms_sandbox, make_dag):
        """Dates, params and configuration are there, and what the test adds."""
        message = "{{ ds }} {{ params.shop }} {{ dag_run.conf.place }} {{ var.value.team }}"
        dag = make_dag(message=message, campaign="c-{{ ts_nodash }}")
        dag.params["shop"] = "Acacia"
        sms_sandbox.run_task(
            dag.get_task("text"),
            logical_date=MONDAY,
            conf={"place": "Durban"},
            context={"var": {"value": {"team": "CRM"}}},
        )
        assert sms_sandbox.texts()["27820000001"] == ["2026-01-05 Acacia Durban CRM"]

    def test_each_call_renders_anew(self, sms_sandbox, make_dag):
        """Another date is another run of the same task, with its own text and campaign."""
        task = make_dag(message="Hi {name}, {{ ds }}", campaign="c-{{ ds }}", source=PEOPLE[:1]).get_task("text")
        for day in (MONDAY, TUESDAY):
            sms_sandbox.run_task(task, logical_date=day)
        assert sms_sandbox.texts() == {"27820000001": ["Hi Thandi, 2026-01-05", "Hi Thandi, 2026-01-06"]}
        assert (task.message, task.campaign) == ("Hi {name}, {{ ds }}", "c-{{ ds }}")

    def test_each_call_takes_its_own_xcoms(self, sms_sandbox):
        """What other tasks returned to the call before is not kept."""
        from airflow.providers.common.compat.sdk import DAG, task

        from airflow_provider_sms.operators.sms import BulkSmsOperator

        @task
        def overdue():
            raise AssertionError

        with DAG("overdue", schedule=None):
            text = BulkSmsOperator(task_id="text", source=overdue(), message="Hi {name}")
        for day, people in ((MONDAY, PEOPLE[:1]), (TUESDAY, PEOPLE[1:])):
            sms_sandbox.run_task(text, logical_date=day, xcoms={"overdue": people})
        assert sms_sandbox.texts() == EVERYBODY

    def test_a_decorated_task_runs(self, sms_sandbox):
        """What the call of a decorated function returns is a task; what it takes of other tasks is given."""
        from airflow.providers.common.compat.sdk import DAG, task

        from airflow_provider_sms.decorators.bulk_sms import bulk_sms_task

        @task
        def overdue():
            raise AssertionError

        @bulk_sms_task(message="Hi {name}")
        def text(people):
            return people

        with DAG("decorated", schedule=None):
            made = text(overdue())
        with pytest.raises(LookupError, match=r"of task overdue\..*xcoms=\{'overdue': \.\.\.\}"):
            sms_sandbox.run_task(made)
        sms_sandbox.run_task(made, xcoms={"overdue": PEOPLE})
        assert sms_sandbox.texts() == EVERYBODY

    def test_a_mapped_task_is_refused(self, sms_sandbox):
        """It is many tasks, and Airflow's own words would be about its arguments."""
        from airflow.providers.common.compat.sdk import DAG

        from airflow_provider_sms.operators.sms import BulkSmsOperator

        with DAG("reminders", schedule=None):
            mapped = BulkSmsOperator.partial(task_id="text", source=PEOPLE).expand(message=["Hi", "Bye"])
        with pytest.raises(ValueError, match=r"^Task 'text' is mapped.*Run the DAG with run\(\)$"):
            sms_sandbox.run_task(mapped)
        assert sms_sandbox.texts() == {}

    def test_what_a_task_that_there_is_not_returned_is_refused(self, sms_sandbox, make_dag):
        """A mistyped task id would be ignored in silence; the error names the tasks that there are."""
        with pytest.raises(LookupError, match=r"no other task 'unknown' or 'text', .* It has no other task$"):
            sms_sandbox.run_task(make_dag().get_task("text"), xcoms={"unknown": 1, "text": 2})

    def test_the_tasks_own_error_is_raised(self, sms_sandbox, make_dag):
        """A test sees the error that Airflow would log."""
        from airflow.providers.common.compat.sdk import AirflowFailException

        sms_sandbox.fail_next("drop_after")
        with pytest.raises(AirflowFailException, match="may have been sent"):
            sms_sandbox.run_task(make_dag().get_task("text"))

    @pytest.mark.parametrize("arguments", [{}, {"approvers": ["ann"], "four_eyes": True}, {"approval_timeout": 60}])
    @pytest.mark.parametrize(("answer", "sent"), [("Send", EVERYBODY), ("Stop", {})])
    def test_a_person_answers(self, sms_sandbox, make_dag, arguments, answer, sent):
        """A plan that a person must approve goes out, or does not."""
        from airflow.providers.common.compat.sdk import AirflowFailException

        task = make_dag(approve=True, **arguments).get_task("text")
        if answer == "Send":
            assert sms_sandbox.run_task(task, answer=answer)["accepted"] == 2
        else:
            with pytest.raises(AirflowFailException, match=r"decided not to send campaign "):
                sms_sandbox.run_task(task, answer=answer)
        assert sms_sandbox.texts() == sent

    @pytest.mark.parametrize(
        ("given", "words"), [({}, "nobody answers"), ({"answer": "Yes"}, "'Yes' is not one of its answers")]
    )
    def test_a_question_that_nobody_answers_is_an_error(self, sms_sandbox, make_dag, given, words):
        """It says what can be answered, and nobody is texted."""
        with pytest.raises(LookupError, match=rf"{words}: .*send 2 messages.*'Send' or 'Stop'"):
            sms_sandbox.run_task(make_dag(approve=True).get_task("text"), **given)
        assert sms_sandbox.texts() == {}

    def test_a_person_answers_about_lost_responses(self, sms_sandbox, make_dag):
        """The request that was lost goes out again, as the person says."""
        sms_sandbox.fail_next("drop_before")
        task = make_dag(on_unknown="ask").get_task("text")
        assert sms_sandbox.run_task(task, answer="Resend")["accepted"] == 2
        assert sms_sandbox.texts() == EVERYBODY

    def test_a_person_answers_one_question(self, sms_sandbox):
        """A second one, about people who were not approved, is an error, and not a wait for ever."""
        from airflow_provider_sms.decorators.bulk_sms import bulk_sms_task

        calls = []

        @bulk_sms_task(message="Hi {name}", approve=True)
        def text():
            calls.append(1)
            return PEOPLE[: len(calls)]

        with pytest.raises(LookupError, match="A person answers one question of a task"):
            sms_sandbox.run_task(text(), answer="Send")
        assert (len(calls), sms_sandbox.texts()) == (2, {})

    def test_a_connection_to_a_service_is_refused(self, sms_sandbox, make_dag, monkeypatch):
        """The connection is looked at once its template is rendered."""
        monkeypatch.setenv("AIRFLOW_CONN_SMS_REAL", ELSEWHERE)
        dag = make_dag(sms_conn_id="sms_{{ params.account }}")
        dag.params["account"] = "real"
        with pytest.raises(ValueError, match="'sms_real' does not lead to the sandbox"):
            sms_sandbox.run_task(dag.get_task("text"))


class TestFaults:
    """Requests fail to order."""

    def test_faults_wait_in_line(self, sms_sandbox):
        """Each call adds a fault behind those that wait."""
        sms_sandbox.fail_next("drop_after", times=2)
        sms_sandbox.fail_next("status", status=503)
        waiting = sms_sandbox.service.state.faults.pending()
        assert [(each["kind"], each["times"], each["status"]) for each in waiting] == [
            ("drop_after", 2, 500),
            ("status", 1, 503),
        ]

    def test_a_fault_that_there_is_not_is_refused(self, sms_sandbox):
        """A slip of the pen is no fault that never comes."""
        with pytest.raises(ValueError, match="kind must be one of"):
            sms_sandbox.fail_next("explode")


def test_a_request_of_another_machine_is_not_made_during_a_run(sms_sandbox):
    """Code of a team, a notifier of questions and the like are not seen before the run."""
    from airflow.providers.common.compat.sdk import BaseOperator

    from airflow_provider_sms.hooks.sms import SmsHook

    class Other(BaseOperator):
        def execute(self, context):
            SmsHook("sms_other").get_balance()

    sms_sandbox.connect("sms_other", host="https://sms.example.com/v1")
    with pytest.raises(ValueError, match="its request was not made"):
        sms_sandbox.run_task(Other(task_id="other"))


def test_a_balance_is_not_read_from_another_machine(sms_sandbox):
    """The account's balance may have an address of its own."""
    from airflow_provider_sms.sensors.balance import BalanceSensor

    sms_sandbox.connect("sms_default", {"balance_url": "https://sms.example.com/v1"})
    with pytest.raises(Exception, match="its request was not made"):
        sms_sandbox.run_task(BalanceSensor(task_id="credit", min_balance=1))


def test_a_ledger_of_its_own_is_refused(sms_sandbox):
    """In the real one people would count as texted."""
    from airflow_provider_sms.operators.sms import BulkSmsOperator

    task = BulkSmsOperator(task_id="send", source=[{"destination": "27820000001"}], message="Hi", ledger_conn_id="real")
    with pytest.raises(ValueError, match="'send' has a ledger_conn_id"):
        sms_sandbox.run_task(task)


def test_a_ledger_that_is_seen_during_a_run_alone_is_not_opened(sms_sandbox, monkeypatch):
    """A ledger_conn_id may come by expand_kwargs: then no connection is made to its server."""
    from airflow.providers.common.compat.sdk import BaseOperator

    from airflow_provider_sms.hooks.ledger import open_existing_ledger, open_ledger, open_ledger_if_present

    def open_if_present(conn_id):
        with open_ledger_if_present(conn_id):
            pass

    class Other(BaseOperator):
        def execute(self, context):
            for opening in (open_ledger, open_if_present, open_existing_ledger):
                with pytest.raises(ValueError, match="'real_ledger' is not opened"):
                    opening("real_ledger")
            return "refused"

    monkeypatch.setenv("AIRFLOW_CONN_REAL_LEDGER", "postgres://sms@127.0.0.1:9/ledger")
    assert sms_sandbox.run_task(Other(task_id="other")) == "refused"


def test_the_configured_ledger_is_not_used(sms_sandbox, sms_ledger_path):
    """A kept Airflow may name one."""
    from airflow_provider_sms.operators.sms import BulkSmsOperator

    assert os.environ["AIRFLOW__SMS__LEDGER_CONN_ID"] == ""
    sms_sandbox.run_task(BulkSmsOperator(task_id="send", source=[{"destination": "27820000001"}], message="Hi"))
    assert sms_ledger_path.is_file()
