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


WRONG = ("source='a'", "multiple_outputs=True", "chunk_size='100'", "message=5")


def test_wrong_arguments_are_refused_by_a_type_checker(tmp_path):
    """An argument that the decorator does not have is refused, or a value of another type; Airflow's are accepted."""
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
