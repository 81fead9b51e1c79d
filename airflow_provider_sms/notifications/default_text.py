"""The text of an alert whose author wrote none: a pure function of the callback's context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_sms.messages.parts import count_parts

if TYPE_CHECKING:
    from collections.abc import Mapping


def default_text(context: Mapping[str, Any], base_url: str | None, parts: int) -> str:
    """Return a text that says what happened to which task or DAG in which run, with a link if it fits the SMS parts.

    The context depends on the callback: that of a DAG has a ``reason``, and sometimes an arbitrary task of the run;
    that of a deadline has the run as a mapping. Missing facts are left out.
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
        # The state is missing if the task's process died. Then Airflow calls only callbacks for failures.
        state = _of(ti, "state") or "failed"
        return f"{dag_id}.{_of(ti, 'task_id')}{mapped} {_spaced(state)}, try {_of(ti, 'try_number')}"
    if (reason := context.get("reason")) is not None:
        return f"DAG {dag_id}: {_spaced(reason)}"
    if (deadline := context.get("deadline")) is not None:
        # To the minute: in UTC, as a datetime or as text.
        when = str(_of(deadline, "deadline_time"))[:16].replace("T", " ")
        return f"DAG {dag_id} missed its deadline of {when} UTC"
    return f"DAG {dag_id}" if dag_id else "a callback of no DAG"


def _link(ti: Any, dag_id: Any, run_id: Any, base_url: str | None) -> str:
    """Return the URL of the task's log, else of the run; empty if it works only on this machine."""
    link = _of(ti, "log_url")
    if not link and base_url and dag_id and run_id:
        link = f"{base_url.rstrip('/')}/dags/{quote(dag_id)}/runs/{quote(run_id)}"
    return "" if not link or "://localhost" in link else str(link)


def _of(thing: Any, name: str) -> Any:
    """Return a value of a mapping or an object; None means that it is missing."""
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _spaced(name: Any) -> str:
    """Return a state or a reason, which may be a member of an enumeration, as words."""
    return str(getattr(name, "value", name)).replace("_", " ")
