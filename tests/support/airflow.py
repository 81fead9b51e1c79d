"""Running a task in a real Airflow of any version, in this process."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import logging
import re
import sys
import tempfile
import time
import warnings
from importlib import import_module
from types import SimpleNamespace

from support.versions import AIRFLOW

_numbers = itertools.count()


def run_task(make_task, *, retries=0, only=True, **dag_arguments):
    """Run a task in a DAG of its own, and return what it left behind: its XComs by key, ``log``, ``summary`` and more.

    :param make_task: makes the task; called within the DAG.
    :param only: None returns the run itself, for a task that is mapped.
    """
    import pendulum
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.providers.common.compat.sdk import DAG
    from airflow.utils.session import create_session
    from sqlalchemy import select

    default_args = {"retries": retries, "retry_delay": 0}
    with DAG(f"dag_{next(_numbers)}", schedule=None, default_args=default_args, **dag_arguments) as dag:
        task = make_task()
    with tempfile.TemporaryDirectory() as empty:
        bag = load_dags(empty)
    bag.bag_dag(dag)
    sync_dags(bag)
    with everything_logged() as output:
        run = run_dag(dag, pendulum.now("UTC"))
    if only is None:
        return run
    (instance,) = (ti for ti in run.get_task_instances() if ti.task_id == task.task_id)
    where = {"dag_id": run.dag_id, "run_id": run.run_id, "task_id": task.task_id}
    with create_session() as session:
        if AIRFLOW >= (3, 4):  # it is kept by attempt
            rendered = RenderedTaskInstanceFields.get_for_attempt(instance.id, session=session)
        else:
            rendered = session.scalars(select(RenderedTaskInstanceFields).filter_by(**where)).first()
    xcoms = {row.key: value for row, value in stored_xcoms(**where)}
    return SimpleNamespace(
        state=str(instance.state),
        tries=instance.try_number,
        xcoms=xcoms,
        summary=xcoms.get("return_value"),
        rendered=dict(rendered.rendered_fields) if rendered else {},
        log=output.getvalue(),
        run_id=run.run_id,
    )


@contextlib.contextmanager
def everything_logged():
    """Collect what is logged or printed, and not by a fixture of pytest's: Airflow's handlers keep what it closes.

    Each line is there once, also where an earlier test has left a handler that prints it.
    """
    output, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(output)
    of_others = [each for each in root.handlers if not type(each).__module__.startswith("_pytest")]
    for each in of_others:
        root.removeHandler(each)
    root.addHandler(handler)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            yield output
    finally:
        root.removeHandler(handler)
        for each in of_others:
            root.addHandler(each)


def run_dag(dag, logical_date, conf=None):
    """Run a DAG in this process, and give its run."""
    _mend_test_runs()
    with warnings.catch_warnings():
        # Airflow warns when it replaces a run of a DAG that has changed since, as between two tests.
        warnings.filterwarnings("ignore", "Multiple rows returned with uselist=False")
        return dag.test(logical_date=logical_date, run_conf=conf)


def load_dags(folder, path=None):
    """Load a folder's DAGs, or those of one file, as Airflow does, and return its bag of them."""
    return _dagbag_module().BundleDagBag(path or folder, bundle_path=folder)


def sync_dags(bag):
    """Store the DAGs of a bag in Airflow's database."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager

    manager = DagBundlesManager()
    manager.sync_bundles_to_db()
    bundle, *_ = manager.get_all_dag_bundles()
    _dagbag_module().sync_bag_to_db(bag, bundle.name, None)


def _dagbag_module():
    return import_module("airflow.models.dagbag" if AIRFLOW < (3, 2) else "airflow.dag_processing.dagbag")


@functools.cache
def _mend_test_runs():
    """Let ``dag.test()`` look often whether a task still waits, and in an older Airflow do what its real tasks do.

    It serves tasks of its own version alone: making the routes for those of all others takes seconds.
    """
    if (3, 3) <= AIRFLOW < (3, 4):
        from airflow.api_fastapi.execution_api import routes, versions
        from cadwyn import HeadVersion, Version, VersionBundle
        from cadwyn.route_generation import _DELETED_ROUTE_TAG as OF_OTHERS

        of_all = routes.execution_api_router.routes
        of_all[:] = [route for route in of_all if OF_OTHERS not in getattr(route, "tags", ())]
        versions.bundle = VersionBundle(HeadVersion(), Version(versions.bundle.versions[0].value))
    sleep = time.sleep

    def sleep_less(seconds):
        waits = sys._getframe(1).f_globals["__name__"] in ("airflow.sdk.definitions.dag", "airflow.models.dag")
        sleep(min(seconds, 0.05) if waits else seconds)

    time.sleep = sleep_less
    if AIRFLOW < (3, 3):
        from airflow.sdk.execution_time import supervisor, task_runner

        # Each task makes an API server, which takes longer than the task.
        supervisor.in_process_api_server = functools.cache(supervisor.in_process_api_server)
        finalize = task_runner.finalize

        def tell_callbacks_the_error(ti, state, context, log, error):
            context["exception"] = error
            finalize(ti, state, context, log, error)

        task_runner.finalize = tell_callbacks_the_error


def serialized(dag):
    """Give what Airflow stores of a DAG."""
    try:
        from airflow.serialization.serialized_objects import DagSerialization as Serialization
    except ImportError:  # before Airflow 3.2
        from airflow.serialization.serialized_objects import SerializedDAG as Serialization
    return Serialization.serialize_dag(dag)


def as_shown(field):
    """Give a rendered list or dict of words, of which Airflow 3.1 stores the text that Python writes."""
    if not isinstance(field, str):
        return field
    inside = field[1:-1]
    return dict(re.findall(r"'(\w+)': ([^,]+)", inside)) if field.startswith("{") else inside.split(", ")


def stored_xcoms(**where):
    """Return what tasks pushed, as Airflow keeps it, by map index: pairs of the row and its value."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        rows = session.scalars(select(XComModel).filter_by(**where).order_by(XComModel.map_index)).all()
        return [(row, XComModel.deserialize_value(row)) for row in rows]
