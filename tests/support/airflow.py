"""Running a task in a real Airflow, in this process."""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
from dataclasses import dataclass
from typing import Any

_numbers = itertools.count()


@dataclass
class Ran:
    """What a run of a one-task DAG left behind."""

    state: str
    tries: int
    xcoms: dict[str, Any]
    rendered: dict[str, Any]
    log: str
    run_id: str

    @property
    def summary(self):
        return self.xcoms["return_value"]


def run_task(make_task, *, dag_id=None, retries=0, only=True):
    """Run a task in a DAG of its own, and say what became of it.

    :param make_task: makes the task; called within the DAG.
    :param only: None gives the run itself, for a task that is mapped.
    """
    import pendulum
    from airflow.providers.common.compat.sdk import DAG

    dag_id = dag_id or f"dag_{next(_numbers)}"
    with DAG(dag_id, schedule=None, default_args={"retries": retries, "retry_delay": 0}) as dag:
        task = make_task()
    register(dag)
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    logging.getLogger().addHandler(handler)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            run = dag.test(logical_date=pendulum.now("UTC"))
    finally:
        logging.getLogger().removeHandler(handler)
    return run if only is None else _result(run, task.task_id, output.getvalue())


def register(dag):
    """Let Airflow's database know a DAG that stands in no file."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db

    manager = DagBundlesManager()
    manager.sync_bundles_to_db()
    (bundle,) = manager.get_all_dag_bundles()
    bag = BundleDagBag(bundle.path, bundle_path=bundle.path, bundle_name=bundle.name)
    bag.bag_dag(dag)
    sync_bag_to_db(bag, bundle.name, None)


def _result(run, task_id, log):
    import json

    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    (instance,) = (ti for ti in run.get_task_instances() if ti.task_id == task_id)
    with create_session() as session:
        where = {"dag_id": run.dag_id, "run_id": run.run_id, "task_id": task_id}
        xcoms = session.scalars(select(XComModel).filter_by(**where)).all()
        rendered = session.scalars(select(RenderedTaskInstanceFields).filter_by(**where)).first()
        return Ran(
            state=str(instance.state),
            tries=instance.try_number,
            xcoms={x.key: json.loads(x.value) if isinstance(x.value, str) else x.value for x in xcoms},
            rendered=dict(rendered.rendered_fields) if rendered else {},
            log=log,
            run_id=run.run_id,
        )
