from __future__ import annotations

import inspect


def test_the_types_know_every_argument():
    """What editors and type checkers are told is what the operator and Airflow take, by name."""
    from airflow.providers.common.compat.sdk import BaseOperator

    from airflow_provider_sms.decorators.arguments import BulkSmsArguments, TaskArguments
    from airflow_provider_sms.operators.base import SmsOperatorBase
    from airflow_provider_sms.operators.sms import BulkSmsOperator

    def names(operator):
        return set(inspect.signature(operator.__init__).parameters) - {"self", "kwargs"}

    assert names(BaseOperator) - {"multiple_outputs"} <= set(TaskArguments.__annotations__)
    ours = set(BulkSmsArguments.__annotations__) - set(TaskArguments.__annotations__)
    assert ours == (names(BulkSmsOperator) | names(SmsOperatorBase)) - {"source"}


WRONG = ("mesage='Hi'", "source='a'", "multiple_outputs=True", "chunk_size='100'", "retries='x'")


def test_wrong_arguments_are_refused_by_a_type_checker(tmp_path):
    """A name that is not there is refused, or a value of another type, and nothing else."""
    from mypy import api

    right = ["message='Hi', on_invalid='skip', retries=2, report=None, pool='sms'"]
    lines = [
        "from airflow_provider_sms.decorators.bulk_sms import bulk_sms_task",
        "def find(day: str) -> str: return day",
    ]
    lines += [f"bulk_sms_task({arguments})(find)" for arguments in (*WRONG, *right)]
    lines += ["bulk_sms_task(find)"]
    file, config = tmp_path / "dag.py", tmp_path / "mypy.ini"
    file.write_text("\n".join(lines))
    # Nothing is read but the decorator: Airflow and pandas take a minute.
    ours = "[mypy-airflow_provider_sms.decorators.*]\nfollow_imports = silent\n"
    config.write_text(f"[mypy]\nstrict = True\nfollow_imports = skip\n{ours}")
    found, failed, _ = api.run([str(file), f"--config-file={config}", f"--cache-dir={tmp_path / 'cache'}"])
    refused = {int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line}
    assert (failed, refused) == ("", set(range(3, 3 + len(WRONG)))), found
