from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import DAG
from support.airflow import load_dags, run_task

from airflow_provider_sms.decorators.bulk_sms import bulk_sms_task
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.rendering import is_text_file
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator
from airflow_provider_sms.sensors.balance import BalanceSensor

ROWS = [{"destination": "27820000001", "first_name": "Ann"}]
FILES = ["welcome.txt", "welcome.j2", "texts/welcome.txt", "welcome.txt.j2"]
FILES += ["{{ params.name }}.txt", "{% raw %}a{% endraw %}.j2"]
TEXTS = ["See terms.txt", "https://example.com/terms.txt", "welcome.txt ", "\nwelcome.txt", "welcome", ".TXT"]
TEXTS += ["{{ params.text }}", "{{ params.text }} welcome.txt", "", None, 5, ["welcome.txt"]]


@pytest.mark.parametrize("message", FILES)
def test_one_word_is_the_name_of_a_file(message):
    """If it ends like one."""
    assert is_text_file(message)


@pytest.mark.parametrize("message", TEXTS, ids=repr)
def test_everything_else_is_a_text(message):
    """Whatever it ends with."""
    assert not is_text_file(message)


@pytest.fixture
def folder(tmp_path):
    """A folder in which Airflow looks for templates."""
    (tmp_path / "welcome.txt").write_text("\ufeffWelcome, {first_name}: {{ params.shop }}\r\n\r\n", encoding="utf-8")
    (tmp_path / "en.j2").write_text("Hello {first_name}\n")
    (tmp_path / "all.j2").write_text("Hello {{ params.shop }}\n")
    (tmp_path / "af.j2").write_text("{# Afrikaans #}\nHallo {first_name}\n")
    return tmp_path


@pytest.fixture
def text(sms_default, ledger_path, folder):
    """Run an operator in a DAG that finds the folder's templates."""

    def text(message, **arguments):
        return run_task(
            lambda: BulkSmsOperator(**{"task_id": "send", "source": ROWS, "message": message, **arguments}),
            template_searchpath=str(folder),
            params={"shop": "Acacia", "name": "welcome", "text": "en.j2"},
        )

    return text


@pytest.mark.parametrize("message", ["welcome.txt", "{{ params.name }}.txt"])
def test_the_text_of_a_file_is_rendered_and_sent(text, witnessed, message):
    """As if it stood in the DAG, without a byte order mark and blank lines, which each text would pay for."""
    ran = text(message)
    assert set(witnessed()) == {("27820000001", "Welcome, Ann: Acacia")}
    assert ran.rendered["message"] == "Welcome, {first_name}: Acacia"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("message", "sent"),
    [
        ("See welcome.txt", "See welcome.txt"),
        ("https://example.com/welcome.txt", "https://example.com/welcome.txt"),
        ("welcome.txt ", "welcome.txt"),
        ("{{ params.text }}", "en.j2"),
    ],
)
def test_a_text_that_ends_like_a_file_is_sent_as_it_is(text, witnessed, message, sent):
    """No file of that name is looked for, although there is one."""
    assert text(message).state == "success"
    assert set(witnessed()) == {("27820000001", sent)}


def test_other_arguments_name_no_text(text, folder, witnessed):
    """Of a source, a campaign, a send option and what is nested in them the end has no meaning."""
    ran = text("Hi", campaign="en.j2", send_options={"CampaignName": "welcome.txt", "More": ["af.j2"]})
    assert (ran.state, ran.summary["campaign"]) == ("success", "en.j2")
    ran = text("Hi", source=str(folder / "welcome.txt"))
    assert ran.state == "failed"
    assert "welcome.txt: is text; if it is a table" in ran.log


def test_a_dag_may_mark_comments_in_another_way(sms_default, ledger_path, sandbox):
    """A text that ends like a file is sent as it is, whatever the signs of the DAG's templates are."""
    signs = {"comment_start_string": "((*", "comment_end_string": "*))"}
    ran = run_task(
        lambda: GroupSmsOperator(task_id="text", message="https://example.com/terms.txt", groups="staff"),
        jinja_environment_kwargs=signs,
    )
    texts = {message.content for message in sandbox.state.accepted}
    assert (ran.state, texts) == ("success", {"https://example.com/terms.txt"})


def test_mapped_tasks_have_a_text_each(sms_default, ledger_path, folder, witnessed):
    """``expand`` over names of files."""

    def make():
        mapped = BulkSmsOperator.partial(task_id="send", source=ROWS, campaign="c{{ ti.map_index }}")
        return mapped.expand(message=["en.j2", "af.j2"])

    run = run_task(make, only=None, template_searchpath=str(folder))
    assert str(run.state) == "success"
    assert set(witnessed()) == {("27820000001", "Hello Ann"), ("27820000001", "Hallo Ann")}


def test_groups_and_the_sensor_read_files_too(sms_default, ledger_path, folder, sandbox):
    """Their messages are those of the operator."""
    ran = run_task(
        lambda: GroupSmsOperator(task_id="text", message="all.j2", groups="staff"),
        template_searchpath=str(folder),
        params={"shop": "Acacia"},
    )
    assert (ran.state, {message.content for message in sandbox.state.accepted}) == ("success", {"Hello Acacia"})
    ran = run_task(lambda: BalanceSensor(task_id="wait", source=ROWS, message="en.j2"), template_searchpath=str(folder))
    assert (ran.state, "1 message costs about 1 credit" in ran.log) == ("success", True)


def test_a_decorated_task_reads_a_file_too(sms_default, ledger_path, folder, witnessed):
    """Its message is that of the operator."""
    run_task(
        lambda: bulk_sms_task(task_id="send", message="en.j2")(lambda: ROWS)().operator, template_searchpath=str(folder)
    )
    assert set(witnessed()) == {("27820000001", "Hello Ann")}


MISSING = """
from airflow.providers.common.compat.sdk import DAG
from airflow_provider_sms.operators.sms import BulkSmsOperator
with DAG("welcome", schedule=None):
    BulkSmsOperator(task_id="text", source="people.parquet", message="welcome.txt")
"""


def test_a_file_that_is_not_there_is_an_error_of_the_dag(airflow_home, tmp_path):
    """Airflow itself would log it, and fail the task; a file beside the DAG's is found."""
    (tmp_path / "dag.py").write_text(MISSING)
    (error,) = load_dags(tmp_path).import_errors.values()
    assert "there is no file 'welcome.txt' beside the DAG's file, or in the DAG's template_searchpath" in error
    (tmp_path / "welcome.txt").write_text("Hi")
    assert load_dags(tmp_path).import_errors == {}


def test_a_task_in_no_dag_finds_no_file():
    """The error says why."""
    task = BulkSmsOperator(task_id="send", source="s", message="welcome.txt")
    with pytest.raises(InputError, match=r"welcome\.txt cannot be looked up outside a DAG"):
        task.render_template_fields({})
    with DAG("d", schedule=None):
        BulkSmsOperator(task_id="send", source="s", message="{{ params.x }}.txt").resolve_template_files()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Hi {{ first_name }}", "'first_name' is undefined"),
        ("{{ first_name }}", "'first_name' is undefined"),
        ("Hi {{ row.first_name }}", "'row' is undefined"),
        ("You owe {{ amount:.2f }}", "expected token 'end of print statement', got ':'"),
        ("Hi {{ first name }}", "expected token 'end of print statement', got 'name'"),
        ("Hi {{ params.nobody }}", "no attribute 'nobody'"),
    ],
)
@pytest.mark.parametrize("native", [False, True], ids=["as text", "as objects"])
def test_a_column_in_double_braces_is_explained_at_once(sms_default, ledger_path, sandbox, message, reason, native):
    """No retry follows, and where there is a table, the error says that single braces name a column."""
    people = {"source": ROWS, "message": message}
    for make, has_columns in (
        (lambda: BulkSmsOperator(task_id="text", **people), True),
        (lambda: group(message), False),
    ):
        ran = run_task(make, retries=2, render_template_as_native_obj=native)
        assert (ran.state, ran.tries, sandbox.state.requests) == ("failed", 1, [])
        assert "message: a template cannot be rendered: " in ran.log
        assert reason in ran.log
        assert ("in message, single braces name a column: {first_name}" in ran.log) == has_columns


def test_any_other_template_that_names_nothing_spends_no_retry(sms_default, ledger_path, sandbox):
    """Nor does one in a list or a dict; the error says what is undefined."""
    for arguments in ({"campaign": "{{ nobody }}"}, {"send_options": {"SenderId": "{{ nobody }}"}}):
        ran = run_task(
            lambda each=arguments: BulkSmsOperator(task_id="text", source=ROWS, message="Hi", **each), retries=2
        )
        assert (ran.state, ran.tries, sandbox.state.requests) == ("failed", 1, [])
        assert "a template cannot be rendered: 'nobody' is undefined" in ran.log


def group(message):
    return GroupSmsOperator(task_id="text", message=message, groups="staff")


@pytest.mark.parametrize("message", ["hello {first_name}", "{amount:.2f} due", "{First Name}", "{c} }}"])
def test_a_group_has_no_columns(message):
    """A field of the bulk operator is refused when the DAG is loaded, instead of texting its braces to everybody."""
    with pytest.raises(InputError, match=r"^message: .* names a column, and the text goes to groups, which have none"):
        group(message)


def test_a_field_that_a_template_renders_is_no_text_for_a_group(sms_default, ledger_path, sandbox):
    """Then the task finds it, and sends nothing."""
    ran = run_task(lambda: group("{{ params.text }}"), retries=2, params={"text": "hello {first_name}"})
    assert (ran.state, ran.tries, sandbox.state.accepted) == ("failed", 1, [])
    assert "message: {first_name} names a column" in ran.log


def test_both_operators_write_a_brace_twice(sms_default, ledger_path, sandbox):
    """One text is the same text in both; a single brace is no text."""
    message = "Use {{ '{{X}}' }}, 50 }}"
    run_task(lambda: group(message))
    run_task(lambda: BulkSmsOperator(task_id="text", source=ROWS, message=message))
    assert {each.content for each in sandbox.state.accepted} == {"Use {X}, 50 }"}
    assert {each.kind for each in sandbox.state.accepted} == {"group", "bulk"}
    with pytest.raises(InputError, match="Write a literal brace twice"):
        group("50 }")
