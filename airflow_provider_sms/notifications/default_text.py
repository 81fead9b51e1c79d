"""What an alert says where nobody has written a text for it: a pure function of what Airflow hands to a callback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_sms.messages.parts import count_parts

if TYPE_CHECKING:
    from collections.abc import Mapping


def default_text(context: Mapping[str, Any], base_url: str | None, parts: int) -> str:
    """Say what has happened to which task or DAG, in which run, with a link to it.

    Airflow hands different things to the callback of a task, to that of a DAG, which has a ``reason`` and sometimes any
    task of the run beside it, and to that of a deadline, which has its run as a mapping. What is not there is left out.

    :param context: as Airflow hands it to a callback.
    :param base_url: of Airflow's web page; None: not known.
    :param parts: SMS that the link must fit into beside the words, or it is left out: half a link leads nowhere.
    """
    ti, run = context.get("ti"), context.get("dag_run")
    dag_id = _of(ti, "dag_id") or _of(context.get("dag"), "dag_id") or _of(run, "dag_id")
    run_id = _of(ti, "run_id") or context.get("run_id") or _of(run, "dag_run_id")
    if context.get("reason") is not None:
        ti = None
    words = f"Airflow: {_event(context, ti, dag_id)}"
    if run_id:
        words += f", run {run_id}"
    link = _link(ti, dag_id, run_id, base_url)
    with_link = f"{words}\n{link}"
    return with_link if link and count_parts(with_link) <= parts else words


def _event(context: Mapping[str, Any], ti: Any, dag_id: Any) -> str:
    if ti is not None:
        map_index = _of(ti, "map_index")
        mapped = f"[{map_index}]" if map_index is not None and map_index >= 0 else ""
        # There is none where the task's process died. Then Airflow calls only those that want to know of failures.
        state = _of(ti, "state") or "failed"
        return f"{dag_id}.{_of(ti, 'task_id')}{mapped} {_spaced(state)}, try {_of(ti, 'try_number')}"
    if (reason := context.get("reason")) is not None:
        return f"DAG {dag_id}: {_spaced(reason)}"
    if (deadline := context.get("deadline")) is not None:
        # To the minute. It is in UTC, a time or the text of one.
        when = str(_of(deadline, "deadline_time"))[:16].replace("T", " ")
        return f"DAG {dag_id} missed its deadline of {when} UTC"
    return f"DAG {dag_id}" if dag_id else "a callback of no DAG"


def _link(ti: Any, dag_id: Any, run_id: Any, base_url: str | None) -> str:
    """Give the address of the task's log, else of the run; empty where only this machine would find it."""
    link = _of(ti, "log_url")
    if not link and base_url and dag_id and run_id:
        link = f"{base_url.rstrip('/')}/dags/{quote(dag_id)}/runs/{quote(run_id)}"
    return "" if not link or "://localhost" in link else str(link)


def _of(thing: Any, name: str) -> Any:
    """Read a value of a mapping or an object; None where it is not there."""
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _spaced(name: Any) -> str:
    """Write a state or a reason, which can be a member of an enumeration, for people."""
    return str(getattr(name, "value", name)).replace("_", " ")
