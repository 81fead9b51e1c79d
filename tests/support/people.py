"""A person who answers the questions of tasks in Airflow's required actions."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import datetime, timezone

from sqlalchemy import select

from airflow_provider_sms.ledger.approvals import PlanExtent
from airflow_provider_sms.ledger.schema import approval, campaign
from airflow_provider_sms.messages.subset import MessageSubset

NOBODY = "nobody"
"""In place of an option: nobody answers in time."""


@contextmanager
def somebody_answers(*options, name="ann"):
    """Answer the next questions one after the other, like Airflow's API from 3.3 on, and return the questions.

    :param options: the chosen option; a pair of the option and the form's fields, which may be a function without
        arguments that is called once the question is there; a triple with the user's id as well, who is of that name;
        or ``NOBODY``.
    """
    questions = []
    left, expired = list(options), set()
    ended = threading.Event()

    def answer():
        try:
            while not ended.wait(0.1):
                _look(left, name, questions, expired)
        except BaseException:
            _give_up()
            raise

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield questions
    finally:
        ended.set()
        thread.join()


def _look(left, name, questions, expired):
    """Answer a waiting task; without an answer, fail the task, so that no run waits for ever."""
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.execute(_waiting()).first()
        is_open = found is not None and found[0].responded_at is None and found[0].ti_id not in expired
    # Outside the session, because a thread has only one.
    chosen = _next_choice(left) if is_open else None
    with create_session() as session:
        found = session.execute(_waiting()).first()
        if found is None:
            return
        detail, instance = found
        if detail.responded_at is None and is_open:
            questions.append(
                {
                    "subject": detail.subject,
                    "body": detail.body,
                    "options": detail.options,
                    "params": detail.params,
                    "assignees": detail.assignees,
                    "timeout": instance.trigger_timeout,
                    "resumes_with": instance.next_kwargs,
                }
            )
            if chosen == NOBODY:
                expired.add(detail.ti_id)
            else:
                option, fields, *user = chosen or (detail.options[-1], {})
                detail.responded_by = {"id": user[0], "name": user[0]} if user else {"id": "7", "name": name}
                detail.responded_at = datetime.now(timezone.utc)
                detail.chosen_options, detail.params_input = [option], fields
        if detail.ti_id in expired:
            _wake({"error": "The time has passed", "error_type": "timeout"}, instance, session)
        elif detail.responded_at is not None:
            _wake(detail.as_resume_event_payload(), instance, session)


def _next_choice(left):
    if not left:
        return None
    chosen = left.pop(0)
    if chosen == NOBODY:
        return NOBODY
    option, fields, *user = (chosen, {}) if isinstance(chosen, str) else chosen
    return option, fields() if callable(fields) else fields, *user


def _waiting():
    """Return the query for tasks that wait for an answer."""
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select

    asked = select(HITLDetail, TaskInstance).join(TaskInstance, TaskInstance.id == HITLDetail.ti_id)
    # Also for an answered task: dag.test() writes the state again after the deferral.
    return asked.where(TaskInstance.state == "awaiting_input")


def _wake(event, instance, session):
    from airflow.models.trigger import handle_event_submit
    from airflow.triggers.base import TriggerEvent

    handle_event_submit(TriggerEvent(event), task_instance=instance, session=session)


def _give_up():
    """Fail all waiting tasks, for which there are no more answers."""
    from airflow.utils.session import create_session

    with create_session() as session:
        for _, instance in session.execute(_waiting()).all():
            instance.state = "failed"


def latest_question():
    """Return what belongs in the field of the form to approve the plan asked about last, as the task's log says it."""
    from airflow_provider_sms.hooks.ledger import ledger_reader

    with ledger_reader().read() as connection:
        return named_in_form(connection, "%")


def named_in_form(connection, campaign_name):
    """Likewise, for campaigns whose names are like a pattern of SQL, from a connection to the ledger."""
    columns = (approval.c.plan_id, approval.c.messages, approval.c.subset)
    query = select(*columns).select_from(approval.join(campaign)).order_by(approval.c.id.desc())
    query = query.where(campaign.c.name.like(campaign_name), approval.c.decision.is_(None))
    plan_id, messages, subset = connection.execute(query).first()
    return PlanExtent(plan_id, messages, MessageSubset.from_bytes(bytes(subset))).name
