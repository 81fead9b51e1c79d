from __future__ import annotations

import ast
import inspect

from airflow_provider_sms.decorators import bulk_sms


def test_the_types_know_every_argument():
    """What editors and type checkers are told is what the operator takes, by name."""
    from airflow_provider_sms.operators.base import SmsOperatorBase
    from airflow_provider_sms.operators.sms import BulkSmsOperator

    def names(operator):
        return set(inspect.signature(operator.__init__).parameters) - {"self", "kwargs"}

    tree = ast.parse(inspect.getsource(bulk_sms))
    # Before Python 3.11 an overload is nowhere to be found at run time.
    overloads = [node.args for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    told = {each.arg for arguments in overloads for each in arguments.kwonlyargs}
    assert told - {"multiple_outputs"} == names(BulkSmsOperator) | names(SmsOperatorBase)


WRONG = (
    "source='a'",
    "multiple_outputs=True",
    "chunk_size='100'",
    "message=5",
    "on_unknown='retry'",
    "on_invalid='drop'",
    "credit_interval='60'",
)


def test_wrong_arguments_are_refused_by_a_type_checker(tmp_path):
    """An argument that the decorator does not have is refused, or a value of another type; Airflow's are accepted."""
    from mypy import api

    right = ["message='Hi', on_invalid='skip', on_unknown='resend', retries=2, report=None, pool='sms'"]
    right += [
        "min_interval=timedelta(days=7), credit_interval=60, approval_timeout=timedelta(hours=1), settle_seconds=5.0"
    ]
    lines = [
        "from airflow_provider_sms.decorators.bulk_sms import bulk_sms_task",
        "from datetime import timedelta",
        "def find(day: str) -> str: return day",
    ]
    lines += [f"bulk_sms_task({arguments})(find)" for arguments in (*WRONG, *right)]
    lines += ["bulk_sms_task(find)"]
    file, config = tmp_path / "dag.py", tmp_path / "mypy.ini"
    file.write_text("\n".join(lines))
    # Nothing is read but the decorator: Airflow and pandas take a minute.
    ours = "[mypy-airflow_provider_sms.decorators.*,airflow_provider_sms.execution.options]\nfollow_imports = silent\n"
    config.write_text(f"[mypy]\nstrict = True\nfollow_imports = skip\n{ours}")
    found, failed, _ = api.run([str(file), f"--config-file={config}", f"--cache-dir={tmp_path / 'cache'}"])
    refused = {int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line}
    assert (failed, refused) == ("", set(range(4, 4 + len(WRONG)))), found


def test_a_choice_has_a_type_of_its_own():
    """The words that an operator takes are those that type checkers and editors know."""
    from typing import get_args

    import pytest

    from airflow_provider_sms.exceptions import InputError
    from airflow_provider_sms.execution.options import OnInvalid, OnUnknown
    from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator

    assert get_args(OnInvalid) == ("fail", "skip")
    assert get_args(OnUnknown) == ("fail", "reconcile", "ask", "resend")
    for kind in (BulkSmsOperator, GroupSmsOperator):
        assert inspect.signature(kind.__init__).parameters["on_unknown"].annotation == "OnUnknown"
    assert inspect.signature(BulkSmsOperator.__init__).parameters["on_invalid"].annotation == "OnInvalid"
    for choice in get_args(OnInvalid):
        assert BulkSmsOperator(task_id="t", source="s", message="m", on_invalid=choice).on_invalid == choice
    with pytest.raises(InputError, match="on_invalid"):
        BulkSmsOperator(task_id="t", source="s", message="m", on_invalid="ask")
