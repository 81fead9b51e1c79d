from __future__ import annotations

import re
import shlex
from datetime import datetime, timedelta, timezone

import pytest
from support.own_pytest import run_pytest
from support.pages import ROOT, blocks, dags

PAGE = ROOT / "docs" / "testing.md"
TEXT = PAGE.read_text()
FILES = dict(re.findall(r"`([\w/]+\.\w+)`:\n\n```\w+\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
COMMAND = [block.code.strip() for block in blocks(PAGE, "sh")][-1]


@pytest.fixture
def project(tmp_path):
    """A team's project: the files of the page, where the page has them."""
    for name, code in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    return tmp_path


@pytest.fixture
def run_command(project):
    """Run the page's command in that project, and return what it prints."""
    assert shlex.split(COMMAND)[:3] == ["python", "-m", "pytest"]
    return lambda: run_pytest(project, *shlex.split(COMMAND)[3:])[1]


def test_the_tests_of_the_page_pass(project, run_command):
    """The page's DAG, settings and tests, as they stand, run with the page's command, and leave no Airflow behind."""
    assert {"dags/remind_customers.py", "pytest.ini", "tests/test_remind_customers.py"} == set(FILES)
    tests = re.findall(r"^def test_", FILES["tests/test_remind_customers.py"], re.MULTILINE)
    assert f"{len(tests)} passed" in run_command()
    assert [path.name for path in project.glob("airflow*")] == []


def test_they_fail_with_a_dag_that_texts_people_again(project, run_command):
    """A team whose campaign has another name in each attempt learns of it from the first test."""
    path = project / "dags" / "remind_customers.py"
    code = path.read_text()
    assert 'campaign="reminders"' in code
    path.write_text(code.replace('campaign="reminders"', 'campaign="{{ macros.uuid.uuid4() }}"'))
    said = run_command()
    assert "FAILED tests/test_remind_customers.py::test_everybody_is_texted_once" in said


def test_a_window_is_opened_and_another_table_is_read(project):
    """The page's test of a DAG with sending hours, and a table that is not there, passes on a day without hours."""
    (code,) = (code for code in dags(ROOT / "docs" / "before-sending.md") if 'DAG("offers"' in code)
    closed_for_days = f"{datetime.now(timezone.utc) + timedelta(days=3):%a}".lower()
    code = re.sub(r"weekdays=\[.*\]", f'weekdays=["{closed_for_days}"]', code)
    code = re.sub(r"^ *hours=.*\n", "", code, flags=re.MULTILINE)
    (project / "dags" / "offers.py").write_text(re.sub(r"^(with DAG\(.*\)):$", r"\1 as dag:", code, flags=re.MULTILINE))
    (test,) = (block.code for block in blocks(PAGE, "python") if "from offers import dag" in block.code)
    (project / "tests" / "test_offers.py").write_text(test)
    assert "1 passed" in run_pytest(project, "tests/test_offers.py")[1]


def test_the_page_has_every_name_of_the_fixture():
    """The table of the page has the public names of the fixture, and no other."""
    from airflow_provider_sms.testing.sandbox import SmsSandbox

    methods = {name for name in vars(SmsSandbox) if not name.startswith("_")}
    rows = set(re.findall(r"^\| `\.(\w+)", TEXT, re.MULTILINE))
    assert methods | {"service", "ledger_path"} == rows


def test_the_error_of_the_page_is_the_fixtures(sms_sandbox, monkeypatch):
    """The page shows what a team reads whose task would text people."""
    from airflow_provider_sms.operators.sms import BulkSmsOperator

    connection = '{"conn_type": "sms", "host": "sms.invalid", "password": "a-real-token"}'
    monkeypatch.setenv("AIRFLOW_CONN_SMS_MARKETING", connection)
    task = BulkSmsOperator(task_id="text_them", source="none.csv", message="Hi", sms_conn_id="sms_marketing")
    with pytest.raises(ValueError) as refused:
        sms_sandbox.run_task(task)
    assert f"ValueError: {refused.value}\n" in TEXT
