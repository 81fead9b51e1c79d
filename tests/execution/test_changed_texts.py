from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest
from airflow.providers.common.compat.sdk import AirflowException
from support.airflow import run_task

from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator

REFUSED = "messages to recipients that an earlier attempt of this task claimed in this run have another text"


class FailsOnce(BulkSmsOperator):
    """Sends, and fails when its first try has sent everything."""

    def execute(self, context):
        super().execute(context)
        if context["ti"].try_number == 1:
            raise AirflowException("after everything was sent")


class GroupFailsOnce(GroupSmsOperator):
    """Sends, and fails when its first try has sent everything."""

    def execute(self, context):
        super().execute(context)
        if context["ti"].try_number == 1:
            raise AirflowException("after everything was sent")


@pytest.fixture
def parts(tmp_path):
    """Write two Parquet files with a hundred people each, part-0 and part-1, and give their folder."""
    for part in range(2):
        numbers = [str(27_820_000_000 + 100 * part + n) for n in range(100)]
        pd.DataFrame({"destination": numbers}).to_parquet(tmp_path / f"part-{part}.parquet")
    return tmp_path


@pytest.fixture
def run_mapped(sms_default, ledger_path):
    """Run two mapped copies of a task that fails once, and give what became of each."""

    def run_mapped(source, message):
        run = run_task(
            lambda: FailsOnce.partial(task_id="send", source=source, message=message).expand(
                send_options=[{"SenderId": "A"}, {"SenderId": "B"}]
            ),
            retries=1,
            only=None,
        )
        copies = sorted(run.get_task_instances(), key=lambda each: each.map_index)
        return [(str(each.state), each.try_number) for each in copies]

    return run_mapped


@pytest.fixture
def texts(witnessed):
    """Count the people by the number of texts that each got."""

    def texts():
        by_person = Counter()
        for (destination, _), count in witnessed().items():
            by_person[destination] += count
        return Counter(by_person.values())

    return texts


def test_a_campaign_that_has_another_name_at_each_try_texts_nobody_twice(sms_default, ledger_path, people, texts):
    """A name with the time in it makes every try a campaign of its own: the second one refuses."""
    source = people(300)
    ran = run_task(
        lambda: FailsOnce(task_id="send", source=source, message="Hi", campaign="sale-{{ ti.try_number }}"), retries=3
    )
    assert (ran.state, ran.tries, texts()) == ("failed", 2, {1: 300})
    assert f"300 {REFUSED}" in ran.log


def test_a_group_is_not_texted_again_under_another_name(sms_default, ledger_path, sandbox):
    """The same holds for groups."""
    ran = run_task(
        lambda: GroupFailsOnce(task_id="send", groups=["staff"], message="Hi", campaign="sale-{{ ti.try_number }}"),
        retries=3,
    )
    posts = [request for request in sandbox.state.requests if request.operation == "group"]
    assert (ran.state, ran.tries, len(posts)) == ("failed", 2, 1)


@pytest.mark.slow
def test_partitions_in_another_order_with_the_same_text_go_on(run_mapped, parts, texts):
    """Copies share a campaign, so whoever has a row texts nobody twice."""
    source = f"{parts}/part-{{{{ (ti.map_index + ti.try_number) % 2 }}}}.parquet"
    copies = run_mapped(source, "Hello")
    assert (copies, texts()) == ([("success", 2)] * 2, {1: 200})


@pytest.mark.slow
def test_mapped_copies_may_text_the_same_people_different_things(run_mapped, parts, texts):
    """Each copy has a text of its own, on purpose: both go out once, at first tries and later ones."""
    copies = run_mapped(f"{parts}/part-0.parquet", "Hello from {{ ti.map_index }}")
    assert (copies, texts()) == ([("success", 2)] * 2, {2: 100})
