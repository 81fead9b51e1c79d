from __future__ import annotations

import inspect

import pytest
from support.versions import CAN_ASK

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.bulk_options import read_bulk_options, threshold_of
from airflow_provider_sms.operators.sms import BulkSmsOperator


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"max_parts_per_message": 0}, "max_parts_per_message must be a whole number, at least 1"),
        ({"max_invalid": 5}, "max_invalid needs on_invalid='skip'"),
        ({"max_error_rate": 2}, "max_error_rate must be a share"),
        ({"check_balance": "yes"}, "check_balance must be True or False"),
        ({"fail_on_rejected": "yes"}, "fail_on_rejected must be True or False"),
        ({"credit_interval": 0}, "credit_interval must be a number of seconds"),
        ({"send_window": "08:00-20:00"}, "send_window must be a SendWindow"),
        ({"campaign_group": "g"}, "campaign_group and min_interval belong together"),
        ({"campaign_group": " ", "min_interval": None}, "campaign_group must be a name"),
        ({"campaign_group": "g", "min_interval": 7}, "min_interval must be a timedelta"),
        ({"approve_above": {"people": 3}}, "approve_above must be a number of messages"),
    ],
)
def test_arguments_that_cannot_be_obeyed_are_refused(argument, words):
    """Each by its name, and before anything is read."""
    task = BulkSmsOperator(task_id="t", source="s", message="m", **argument)
    with pytest.raises(InputError, match=words.replace("(", "\\(")):
        read_bulk_options(task)


def test_the_threshold_is_of_messages_or_of_credits():
    """A number alone is one of messages."""
    assert threshold_of(None) is None
    assert (threshold_of(10).rows, threshold_of(10).cost) == (10, None)
    assert str(threshold_of({"cost": 0.1}).cost) == "0.1"


@pytest.mark.skipif(not CAN_ASK, reason="this Airflow cannot ask; test_human_input.py holds that it refuses")
def test_one_task_asks_one_kind_of_question():
    """Airflow would show the first question for the second one."""
    task = BulkSmsOperator(task_id="t", source="s", message="m", approve=True, on_unknown="ask")
    with pytest.raises(InputError, match="approve=True and on_unknown='ask' cannot be in one task"):
        read_bulk_options(task)


def test_options_hold_every_argument_of_the_operator():
    """An attempt is given each argument as it was rendered, or the value that is made of it, and never the operator."""
    made = {"min_rows", "max_rows", "max_invalid", "max_parts_per_message", "max_cost", "approve_above"}
    made |= {"max_repeats", "campaign_group", "min_interval", "approval_timeout"}
    above = 7 if CAN_ASK else None
    task = BulkSmsOperator(task_id="t", source="s", message="m", max_rows=5, approve_above=above, report="r.parquet")
    options = read_bulk_options(task)
    names = set(inspect.signature(BulkSmsOperator.__init__).parameters) - made - {"self", "kwargs", "source", "dry_run"}
    assert {name: getattr(options, name) for name in names} == {name: getattr(task, name) for name in names}
    threshold = options.approval_threshold
    assert (options.limits.max_rows, threshold and threshold.rows, options.frequency_cap) == (5, above, None)
