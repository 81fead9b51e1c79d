"""Questions of a task that runs without Airflow's database: they are kept in memory, and the test gives the answer."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

WHO_TRIGGERED, WHO_ANSWERED = "the person who triggered the run", "the person who answered"


@contextmanager
def questions_in_memory() -> Iterator[list[dict[str, Any]]]:
    """Return a list that collects the questions of the tasks in the block, in order, each as Airflow would store it."""
    from airflow.sdk.execution_time import hitl

    asked: list[dict[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hitl, "upsert_hitl_detail", lambda **question: asked.append(question))
        yield asked


def answer_event(task_id: str, question: dict[str, Any], answer: str | None) -> dict[str, Any]:
    """Return what Airflow brings back to the task once a person has answered.

    :param task_id: the task, for an error.
    :param question: as the task asked it. A user whom it is assigned to answers, if there is one.
    :param answer: one of its options; None means that nobody answers.
    :raises LookupError: nobody answers, or it is not one of the options.
    """
    options = question["options"]
    if answer not in options:
        nobody = "nobody answers" if answer is None else f"{answer!r} is not one of its answers"
        raise LookupError(
            f"task {task_id} asks a person, and {nobody}: {question['subject']!r}. Say what a person answers, as "
            f"answer={' or '.join(map(repr, options))}. A person answers one question of a task"
        )
    users = question.get("assigned_users") or [{"id": WHO_ANSWERED, "name": WHO_ANSWERED}]
    return {
        "chosen_options": [answer],
        "params_input": {},
        "responded_at": datetime.now(timezone.utc),
        "responded_by_user": dict(users[0]),
    }
