"""The context of a task that runs without Airflow's database."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_provider_sms.testing.questions import WHO_TRIGGERED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime


class TaskInstance:
    """The first attempt of a task, whose XComs stay in memory.

    :param task: the operator.
    :param run_id: the id of the run.
    :param returned: what other tasks returned, by task id.
    """

    def __init__(self, task: Any, run_id: str, returned: Mapping[str, Any]) -> None:
        self.task = task
        self.id = uuid4()
        self.dag_id: str = task.dag_id
        self.task_id: str = task.task_id
        self.run_id = run_id
        self.map_index = -1
        self.try_number = 1
        self._own: dict[str, Any] = {}
        self._returned = returned
        self._asked: set[str] = set()

    def xcom_push(self, key: str, value: Any) -> None:
        """Keep an XCom.

        :param key: its key.
        :param value: its value.
        """
        self._own[key] = value

    def xcom_pull(self, task_ids: Any = None, key: str = "return_value", **_: Any) -> Any:
        """Return an XCom: of this task, None if there is none; of another task, what the test says that it returned.

        :param task_ids: the task, or a list of tasks; None means this one.
        :param key: the XCom's key.
        :raises LookupError: the test does not say what the other task returned.
        """
        if isinstance(task_ids, (list, tuple, set)):
            return [self.xcom_pull(task_id, key) for task_id in task_ids]
        if task_ids in (None, self.task_id):
            return self._own.get(key)
        self._asked.add(task_ids)
        if key != "return_value" or task_ids not in self._returned:
            raise LookupError(
                f"task {self.task_id} asks for the XCom {key!r} of task {task_ids}. Give run_task what that task "
                f"returned, as xcoms={{{task_ids!r}: ...}}, or run the DAG"
            )
        return self._returned[task_ids]

    @contextmanager
    def requiring_known_tasks(self) -> Iterator[None]:
        """Refuse what the test says that tasks returned which the DAG lacks, once the block has ended without an error.

        The task may have asked for an XCom of another DAG's task, so what it asked for is not refused.

        :raises LookupError: names the tasks of the DAG.
        """
        yield
        if not self.task.has_dag():
            return
        others = [task_id for task_id in self.task.dag.task_ids if task_id != self.task_id]
        unknown = [repr(task_id) for task_id in self._returned if task_id not in (*others, *self._asked)]
        if unknown:
            there_are = f"Its other tasks: {', '.join(map(repr, others))}" if others else "It has no other task"
            raise LookupError(
                f"xcoms: DAG {self.dag_id} has no other task {' or '.join(unknown)}, and task {self.task_id} asked for "
                f"nothing of it. {there_are}"
            )


def task_context(
    task: Any, logical_date: datetime, conf: Mapping[str, Any], xcoms: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the context that Airflow gives a task of a manual run, as far as it is known without a database.

    :param task: the operator.
    :param logical_date: the run's logical date; its data interval begins and ends there.
    :param conf: the run's configuration.
    :param xcoms: what other tasks returned, by task id.
    """
    from airflow.providers.common.compat.sdk import timezone  # type: ignore[attr-defined]  # it is there at run time

    date: Any = timezone.coerce_datetime(logical_date)
    run_id = f"manual__{date.isoformat()}"
    dag = task.dag if task.has_dag() else None
    instance = TaskInstance(task, run_id, xcoms)
    params = {**(dag.params.dump() if dag else {}), **task.params.dump(), **conf}
    ds = date.strftime("%Y-%m-%d")
    return {
        **_accessors(),
        "dag": dag,
        "dag_run": SimpleNamespace(
            dag_id=task.dag_id,
            run_id=run_id,
            conf=dict(conf),
            logical_date=date,
            data_interval_start=date,
            data_interval_end=date,
            run_after=date,
            run_type="manual",
            triggering_user_name=WHO_TRIGGERED,
        ),
        "data_interval_end": date,
        "data_interval_start": date,
        "ds": ds,
        "ds_nodash": ds.replace("-", ""),
        "logical_date": date,
        "params": params,
        "run_id": run_id,
        "task": task,
        "task_instance": instance,
        "ti": instance,
        "ts": date.isoformat(),
        "ts_nodash": date.strftime("%Y%m%dT%H%M%S"),
    }


def _accessors() -> dict[str, Any]:
    """Return what gives templates Airflow's macros, variables and connections."""
    from airflow.sdk.execution_time import context

    variables = {kind: context.VariableAccessor(deserialize_json=kind == "json") for kind in ("json", "value")}
    return {"conn": context.ConnectionAccessor(), "macros": context.MacrosAccessor(), "var": variables}
