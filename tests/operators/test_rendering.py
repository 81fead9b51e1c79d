from __future__ import annotations

import pytest
from support.airflow import run_task

from airflow_provider_sms.decorators.bulk_sms import bulk_sms_task
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator
from airflow_provider_sms.service.client import SmsClient

ROWS = [{"destination": "27820000001", "first_name": "Ann"}]


@pytest.fixture
def folder(tmp_path):
    """A folder in which Airflow looks for templates."""
    (tmp_path / "welcome.txt").write_text("Welcome, {first_name}: {{ params.shop }}\n", encoding="utf-8")
    (tmp_path / "all.txt").write_text("Welcome to {{ params.shop }}\n")
    return tmp_path


def test_a_text_may_be_in_a_file(sms_default, ledger_path, folder, sandbox, witnessed):
    """Airflow's ``include`` reads it, for every task that has a text, and renders what it holds."""
    options = {"template_searchpath": str(folder), "params": {"shop": "Acacia", "name": "welcome"}}
    text = "{% include params.name + '.txt' %}"
    ran = run_task(lambda: BulkSmsOperator(task_id="send", source=ROWS, message=text), **options)
    assert ran.rendered["message"] == "Welcome, {first_name}: Acacia"
    run_task(lambda: bulk_sms_task(task_id="send", message=text)(lambda: ROWS)().operator, **options)
    assert set(witnessed()) == {("27820000001", "Welcome, Ann: Acacia")}
    run_task(lambda: group("{% include 'all.txt' %}"), **options)
    assert sandbox.state.accepted[-1].content == "Welcome to Acacia"


@pytest.mark.parametrize("text", ["See terms.txt", "welcome.txt", "notes.sql", "https://example.com/terms.j2"])
def test_a_text_that_ends_like_a_file_is_a_text(sms_default, ledger_path, witnessed, text):
    """No file is looked for."""
    run_task(lambda: BulkSmsOperator(task_id="send", source=ROWS, message=text, campaign="c.txt"))
    assert set(witnessed()) == {("27820000001", text)}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Hi {{ first_name }}", "'first_name' is undefined"),
        ("Hi {{ row.first_name }}", "'row' is undefined"),
        ("You owe {{ amount:.2f }}", "expected token 'end of print statement', got ':'"),
        ("Hi {{ params.nobody }}", "no attribute 'nobody'"),
        ("{% include 'nobody.txt' %}", "TemplateNotFound: "),
    ],
)
def test_a_template_that_cannot_be_rendered_is_explained_at_once(sms_default, ledger_path, sandbox, message, reason):
    """No retry follows, wherever it stands, and the error says that single braces name a column."""
    people = {"source": ROWS, "message": message}
    for make in (lambda: BulkSmsOperator(task_id="text", **people), lambda: group(message)):
        ran = run_task(make, retries=2)
        assert (ran.state, ran.tries, sandbox.state.requests) == ("failed", 1, [])
        assert "A template cannot be rendered: " in ran.log
        assert reason in ran.log
        assert "Single braces name a column of the table, such as {first_name}" in ran.log
    options = {"SenderId": message}
    ran = run_task(lambda: BulkSmsOperator(task_id="text", source=ROWS, message="Hi", send_options=options), retries=2)
    assert (ran.state, ran.tries, "A template cannot be rendered: " in ran.log) == ("failed", 1, True)


def group(message):
    return GroupSmsOperator(task_id="text", message=message, groups="staff")


@pytest.mark.parametrize("message", ["{amount:.2f} due", "{First Name}"])
def test_a_group_has_no_columns(sms_default, ledger_path, sandbox, message):
    """A field is refused when the DAG is loaded, or by the task, instead of texting its braces to everybody."""
    with pytest.raises(InputError, match=r"^message: .* names a column, and the text goes to groups, which have none"):
        group(message)
    ran = run_task(lambda: group("{{ params.text }}"), retries=2, params={"text": message})
    assert (ran.state, ran.tries, sandbox.state.accepted) == ("failed", 1, [])
    assert "names a column" in ran.log


def test_both_operators_write_a_brace_twice(sms_default, ledger_path, sandbox):
    """One text is the same text in both; a single brace is no text."""
    message = "Use {{ '{{X}}' }}, 50 }}"
    run_task(lambda: group(message))
    run_task(lambda: BulkSmsOperator(task_id="text", source=ROWS, message=message))
    assert {each.content for each in sandbox.state.accepted} == {"Use {X}, 50 }"}
    assert {each.kind for each in sandbox.state.accepted} == {"group", "bulk"}
    with pytest.raises(InputError, match="Write a literal brace twice"):
        group("50 }")


# Where a DAG renders to Python's own objects


# Each is a literal of Python: a number, a tuple, a text in quotes, bytes, a list, a name.
WRITTEN = ["1e5", "1,5", "'x'", '"Ann"', "0x1F", "1_000", "b'x'", "[1, 2]", "True"]


def native(make_task, **params):
    """Run a task in a DAG that renders to objects."""
    return run_task(make_task, render_template_as_native_obj=True, params=params)


def native_bulk(**arguments):
    return lambda: BulkSmsOperator(task_id="send", **{"source": ROWS, "message": "Hi", **arguments})


def native_group(**arguments):
    return lambda: GroupSmsOperator(task_id="text", **{"groups": "staff", "message": "Hi", **arguments})


@pytest.fixture
def posted(monkeypatch):
    """Groups and Send Options of each request, as the client gets them."""
    requests, send = [], SmsClient.send_group

    def posting(self, message, groups, *, send_options=None):
        requests.append((groups, send_options))
        return send(self, message, groups, send_options=send_options)

    monkeypatch.setattr(SmsClient, "send_group", posting)
    return requests


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("make", [native_bulk, native_group])
def test_texts_and_options_go_out_as_they_were_written(sms_default, ledger_path, sandbox, make, written):
    """Of both operators: jinja reads no literal in a text without a template."""
    options = {"SenderId": "12345", "CostCentre": "{{ params.value }} in all", "More": [written]}
    ran = native(make(message=written, campaign=written, send_options=options), value=written)
    (request,) = [each for each in sandbox.state.requests if each.operation != "balance"]
    assert (ran.state, ran.rendered["campaign"]) == ("success", written)
    assert request.send_options == {"SenderId": "12345", "CostCentre": f"{written} in all", "More": [written]}
    assert {each.content for each in sandbox.state.accepted} == {written}


def test_lists_and_options_are_those_that_an_expression_has(sms_default, ledger_path, posted):
    """Groups and Send Options of the run's configuration need no text form, and names of digits stay names."""
    options = {"SenderId": "12345", "ValidityPeriod": 2}
    make = native_group(groups="{{ params.groups }}", send_options="{{ params.options }}")
    native(make, groups=["1e5", "7"], options=options)
    assert posted == [(["1e5", "7"], options)]


@pytest.mark.parametrize(
    "make",
    [
        native_bulk(message="{{ params.value }}"),
        native_bulk(campaign="{{ params.value }}"),
        native_group(message="{{ params.value }}"),
        native_group(groups=["staff", "{{ params.value }}"]),
    ],
    ids=["message", "campaign", "text", "groups"],
)
def test_a_value_that_lost_its_text_is_refused(sms_default, ledger_path, sandbox, make):
    """Nobody can tell whether 100000.0 was written 1e5: the error says so, names the argument, and nothing is sent."""
    ran = native(make, value=1e5)
    assert (ran.state, ran.tries, sandbox.state.accepted) == ("failed", 1, [])
    assert "must be text, not float. A value from another task, or from a template with" in ran.log
