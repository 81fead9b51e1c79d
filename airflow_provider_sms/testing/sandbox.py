"""The sandbox as one test sees it: it runs DAGs and tasks, makes requests fail, and says who was texted."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast
from urllib.parse import urlsplit

import pytest

from airflow_provider_sms.sandbox.faults import Fault
from airflow_provider_sms.service.inputs import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from airflow.providers.common.compat.sdk import DAG

    from airflow_provider_sms.hooks.connection import ConnectionLike
    from airflow_provider_sms.sandbox.faults import FaultKind
    from airflow_provider_sms.sandbox.server import SandboxHandle
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.testing.airflow_home import AirflowHome

RunState = Literal["success", "failed"]
CALLBACKS = (
    "on_execute_callback",
    "on_failure_callback",
    "on_retry_callback",
    "on_skipped_callback",
    "on_success_callback",
)


@dataclass(frozen=True)
class DagRunResult:
    """What a run of a DAG left in Airflow.

    :param state: of the run: ``success`` or ``failed``.
    :param run_id: of the run.
    :param states: the state of each task, by task id; for a mapped task, a list in the order of its map indexes.
    :param returned: what each task returned, by task id: for a task that texts people, its summary. For a mapped task
        it is a list; for a task that returned nothing, None.
    """

    state: RunState
    run_id: str
    states: dict[str, Any]
    returned: dict[str, Any]


class SmsSandbox:
    """A sandbox of one test, with an account and a ledger of its own.

    The fixture creates it; tests do not.

    :param service: the running sandbox: its address, and its ``state`` with the balance and all requests.
    :param home: the Airflow in which DAGs run.
    :param ledger_path: the ledger's file.
    :param monkeypatch: the test's monkeypatch, which removes the connections in the end.
    """

    def __init__(
        self, service: SandboxHandle, home: AirflowHome, ledger_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.service = service
        self.ledger_path = ledger_path
        self._home = home
        self._environment = monkeypatch
        self._started = datetime.now(timezone.utc)

    def texts(self) -> dict[str, list[str]]:
        """Return the texts that each number got, in order, by number: digits with country code."""
        texts: dict[str, list[str]] = {}
        for destination, content in self.service.state.accepted_messages:
            texts.setdefault(destination, []).append(content)
        return texts

    def connect(self, conn_id: str = "sms_default", extra: Mapping[str, Any] | None = None, **fields: Any) -> None:
        """Make an Airflow connection to the sandbox, through the environment; ``sms_default`` exists already.

        :param conn_id: the connection.
        :param extra: its extras, such as ``{"timeout": 0.5}``; None means none.
        :param fields: other fields of the connection in place of the sandbox's, such as a wrong ``password``.
        """
        config = self.service.state.config
        connection = {
            "conn_type": "sms",
            "host": self.service.base_url,
            "login": None if config.token else config.client_id,
            "password": config.token or config.client_secret,
            "extra": dict(extra or {}),
            **fields,
        }
        self._environment.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))

    def fail_next(self, kind: FaultKind, **fields: Any) -> None:
        """Make the next request fail, after those that earlier calls make fail.

        :param kind: what goes wrong, for example ``drop_after``: the service takes the request, and its response is
            lost. The page of the sandbox lists the faults.
        :param fields: more fields of the fault, such as ``times=3`` or, for the kind ``status``, ``status=503``.
        :raises ValueError: a field is out of range.
        """
        self.service.state.faults.add([Fault(kind, **fields)])

    def run(
        self,
        dag: DAG,
        *,
        expected: RunState = "success",
        logical_date: datetime | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> DagRunResult:
        """Run a DAG in this process by Airflow's ``dag.test()``, and return what it left.

        Airflow's metadata database is that of the test run, which the first run makes. Tasks are retried as often as
        in Airflow, without a wait: the DAG's tasks lose their ``retry_delay``.

        :param dag: the DAG, as its file makes it.
        :param expected: the state in which the run should end.
        :param logical_date: the run's logical date. None means the same moment in each call of a test: a second call
            runs the same run again, as if a person had cleared all of its tasks. Another date is another run.
        :param conf: the run's configuration.
        :raises AssertionError: the run ended in another state.
        :raises ValueError: a task has a connection that does not lead to this machine, or a ledger of its own. Nothing
            was run.
        :raises RuntimeError: there is no metadata database for tests. Nothing was run.
        """
        from airflow_provider_sms.testing.dag_runs import register, run_dag

        _refuse_other_services([dag, *dag.tasks])
        self._home.require_database()
        for task in dag.tasks:
            task.retry_delay = timedelta(0)
        register(dag)
        date = logical_date or self._started
        with _only_on_this_machine():
            result = _result_of(run_dag(dag, date, conf, run_after=date))
        if result.state != expected:
            raise AssertionError(
                f"the run of {dag.dag_id} ended as {result.state}, not as {expected}; its tasks: {result.states}. The "
                "captured log says why"
            )
        return result

    def run_task(
        self,
        task: Any,
        *,
        logical_date: datetime | None = None,
        conf: Mapping[str, Any] | None = None,
        xcoms: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        answer: str | None = None,
    ) -> Any:
        """Execute one task in this process, without a metadata database, and return what it returns.

        The templates of a copy are rendered, and then its ``execute`` is called, as Airflow does: the task itself keeps
        its templates for the next call. There are no retries or callbacks, and no deferrals except for a question: for
        these, use :meth:`run`. A second call is the same task of the same run again.

        :param task: an operator, in a DAG or in none, or what the call of a decorated task returns.
        :param logical_date: the run's logical date, as for :meth:`run`.
        :param conf: the run's configuration, ``dag_run.conf`` in templates.
        :param xcoms: what other tasks returned, by task id, as far as this one asks for it; None means nothing.
        :param context: additions to the context, for templates and for the task's own code. Dates, ``params``,
            ``dag_run``, ``run_id``, ``ti``, ``macros``, ``var`` and ``conn`` are there already.
        :param answer: the button that a person presses when the task asks: ``Send`` or ``Stop`` about a plan;
            ``Resend``, ``Treat as sent`` or ``Fail`` about messages whose response was lost. None means that nobody
            answers.
        :raises LookupError: the task asks for an XCom that is not in ``xcoms``, and nothing was run; or it asks a
            person, and ``answer`` is not one of the options; or ``xcoms`` names a task that the DAG lacks, and for
            whose XCom the task did not ask.
        :raises ValueError: the task's connection does not lead to this machine, it has a ledger of its own, or it is
            mapped.
        """
        from airflow_provider_sms.execution.deferral import gives_up_slot
        from airflow_provider_sms.testing.questions import answer_event, questions_in_memory
        from airflow_provider_sms.testing.task_context import task_context

        operator = getattr(task, "operator", task).prepare_for_execution()
        if hasattr(operator, "partial_kwargs"):
            raise ValueError(
                f"Task {operator.task_id!r} is mapped, and run_task executes a single task. Nothing was run. Run the "
                "DAG with run()"
            )
        own = task_context(operator, logical_date or self._started, conf or {}, xcoms or {})
        full = {**own, **(context or {})}
        operator.render_template_fields(full)
        _refuse_other_services([operator])
        with _only_on_this_machine(), own["ti"].requiring_known_tasks(), questions_in_memory() as questions:
            try:
                return operator.execute(full)
            except BaseException as signal:
                if not (questions and gives_up_slot(signal)):
                    raise
                event = answer_event(operator.task_id, questions[0], answer)
                waiting: Any = signal
            resume = getattr(operator, waiting.method_name)
            try:
                return resume(full, event=event, **(waiting.kwargs or {}))
            except BaseException as signal:
                if len(questions) > 1 and gives_up_slot(signal):
                    answer_event(operator.task_id, questions[1], None)
                raise


@contextmanager
def _only_on_this_machine() -> Iterator[None]:
    """Refuse every client of another machine's service, and every ledger on a server.

    It does not matter where they come from: arguments that ``expand_kwargs`` gives, a notifier, a team's own code.
    """
    from airflow_provider_sms.hooks import ledger
    from airflow_provider_sms.hooks.connection import ClientSettings

    make = ClientSettings.client

    def client(settings: ClientSettings, **options: Any) -> SmsClient:
        for url in (settings.base_url, settings.balance_url or settings.base_url):
            if not is_loopback(urlsplit(url).hostname or ""):
                raise ValueError(
                    "A connection does not lead to the sandbox, and the run could text people: its request was not "
                    "made. Call sms_sandbox.connect() with its id first"
                )
        return make(settings, **options)

    def postgres_url(connection: ConnectionLike, extra: Mapping[str, Any]) -> NoReturn:  # noqa: ARG001 - as in ledger
        raise ValueError(
            f"The ledger of connection {connection.conn_id!r} is not opened, since people would count as texted there. "
            "Leave ledger_conn_id out, and set [sms] ledger_conn_id in production"
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientSettings, "client", client)
        patch.setattr(ledger, "postgres_url", postgres_url)
        yield


def _refuse_other_services(owners: Sequence[Any]) -> None:
    """Raise if a task, or a notifier among the callbacks, has a connection to another machine, or a ledger of its own.

    :param owners: DAGs and tasks.
    """
    from airflow_provider_sms.hooks.sms import SmsHook

    for owner in owners:
        if getattr(owner, "partial_kwargs", {}).get("ledger_conn_id") or getattr(owner, "ledger_conn_id", None):
            raise ValueError(
                f"Task {owner.task_id!r} has a ledger_conn_id, and people would count as texted in that ledger. "
                "Nothing was run. Leave it out, and set [sms] ledger_conn_id in production"
            )
    for conn_id in sorted({conn_id for owner in owners for conn_id in _conn_ids(owner)}):
        if "{{" in conn_id:
            raise ValueError(
                f"The connection {conn_id} is a template, and where it leads is not known before the run. Nothing was "
                "run. Use run_task, or a connection without a template"
            )
        host = urlsplit(SmsHook(conn_id).get_settings().base_url).hostname or ""
        if not is_loopback(host):
            raise ValueError(
                f"Connection {conn_id!r} does not lead to the sandbox, and the run could text people. Nothing was run. "
                f"Call sms_sandbox.connect({conn_id!r}) first"
            )


def _conn_ids(owner: Any) -> Iterator[str]:
    """Return the connections of a DAG or a task, and of the notifiers among its callbacks."""
    partial = getattr(owner, "partial_kwargs", {})  # of a mapped task
    given = [partial.get(name) or getattr(owner, name, None) for name in CALLBACKS]
    callbacks = [callback for each in given for callback in (each if isinstance(each, (list, tuple)) else [each])]
    conn_ids = [getattr(each, "sms_conn_id", None) for each in (owner, *callbacks)]
    yield from (str(conn_id) for conn_id in (partial.get("sms_conn_id"), *conn_ids) if conn_id)


def _result_of(run: Any) -> DagRunResult:
    from airflow_provider_sms.testing.dag_runs import returned_values

    values = returned_values(run)
    states: dict[str, Any] = {}
    returned: dict[str, Any] = {}
    for instance in sorted(run.get_task_instances(), key=lambda each: (each.task_id, each.map_index)):
        task_id, state = instance.task_id, str(instance.state)
        value = values.get((task_id, instance.map_index))
        if instance.map_index < 0:
            states[task_id], returned[task_id] = state, value
        else:
            states.setdefault(task_id, []).append(state)
            returned.setdefault(task_id, []).append(value)
    return DagRunResult(cast("RunState", str(run.state)), run.run_id, states, returned)
