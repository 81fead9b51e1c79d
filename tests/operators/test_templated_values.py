from __future__ import annotations

from decimal import Decimal
from itertools import product

import pytest
from airflow.providers.common.compat.sdk import task as airflow_task
from airflow.providers.common.compat.sdk import task_group
from support.airflow import run_task

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.sms import BulkSmsOperator, Limits

ROWS = [{"destination": "27820000001"}, {"destination": "27820000002"}]


def task(**arguments):
    return BulkSmsOperator(**{"task_id": "t", "source": "s", "message": "m", "on_invalid": "skip", **arguments})


def rendered(name, value):
    """Make a task whose template has left a value."""
    if name in LIMITS:
        made = task(limits={name: "{{ params.it }}"})
        made.limits = {name: value}
    else:
        made = task(**{name: "{{ params.it }}"})
        setattr(made, name, value)
    return made


def read(name, value):
    options = rendered(name, value).read_options()
    return getattr(options.limits if name in LIMITS else options, name)


LIMITS = ["min_rows", "max_rows", "max_parts", "max_invalid", "max_cost", "max_repeats", "max_error_rate"]
FLAGS = [(True, True), (False, False), ("True", True), ("False", False), (" false\n", False), ("TRUE", True)]
FLAGS += [("1", True), ("0", False), (1, True), (0, False)]


@pytest.mark.parametrize(("value", "means"), FLAGS, ids=repr)
def test_a_flag_is_read_from_its_text(value, means):
    """A text that says false is false."""
    assert read("dry_run", value) is means


@pytest.mark.parametrize("value", ["", "None", "yes", "no", "off", "2", 2, 1.0, [], "{}"], ids=repr)
def test_every_other_flag_is_refused(value):
    """The error names the argument."""
    with pytest.raises(InputError, match=r"^dry_run must be true or false, not "):
        read("dry_run", value)


NUMBERS = [
    ("max_rows", "5", 5),
    ("max_rows", " 0\n", 0),
    ("min_rows", "1", 1),
    ("max_repeats", "0", 0),
    ("max_invalid", "5", 5),
    ("max_invalid", "0.02", Decimal("0.02")),
    ("max_invalid", 0.02, Decimal("0.02")),
    ("max_cost", "99.50", Decimal("99.50")),
    ("max_cost", Decimal("0.1"), Decimal("0.1")),
    ("max_cost", 0.1, Decimal("0.1")),
    ("max_cost", 7, Decimal(7)),
    ("max_parts", "2", 2),
    ("max_error_rate", "0.1", 0.1),
    ("max_error_rate", 1, 1.0),
]


@pytest.mark.parametrize(("name", "value", "means"), NUMBERS)
def test_a_number_is_read_from_its_text(name, value, means):
    """Exactly, as an int or a Decimal; the share of errors, which nobody adds up, as a float."""
    found = read(name, value)
    assert (found, type(found)) == (means, type(means))


NO_NUMBERS = ["", "None", "many", "1e3", "1_000", "1,5", "-1", "nan", "inf", "0x1", "\N{ARABIC-INDIC DIGIT FIVE}"]
NO_NUMBERS += [True, [5], float("nan"), Decimal("Infinity"), -1]


@pytest.mark.parametrize(
    ("name", "value"),
    [*product(LIMITS, NO_NUMBERS), ("max_rows", "1.0"), ("max_repeats", 1.0), ("max_invalid", "1.0")],
    ids=repr,
)
def test_every_other_number_is_refused(name, value):
    """A limit that cannot be read is not taken for none; a count has no point."""
    with pytest.raises(InputError, match=f"^limits: {name} must be a .*, not "):
        read(name, value)


@pytest.mark.parametrize(
    "name", [*LIMITS, "suppress", "campaign", "ledger_conn_id", "report", "send_options", "source"]
)
def test_what_was_given_does_not_vanish(name):
    """A template without a value would lift the limit, text the suppressed, or send in another campaign or ledger."""
    what = f"limits: {name}" if name in LIMITS else name
    with pytest.raises(InputError, match=f"^{what} is None, once its template is rendered"):
        rendered(name, None).read_options()
    assert task().read_options().limits == Limits()


def test_an_error_shows_no_number():
    """A text may be anything: it is masked and cut."""
    with pytest.raises(InputError, match=r"not the text '2782\*{5}01'$"):
        task(dry_run="27820000001")
    with pytest.raises(InputError, match=r"not the text 'a{20}…'$"):
        task(dry_run="a" * 50)
    with pytest.raises(InputError, match=r"not a value of type list$"):
        task(dry_run=["27820000001"])


@pytest.mark.parametrize("limits", [Limits(max_rows="{{ 5 }}", max_cost=7), {"max_rows": "{{ 5 }}", "max_cost": 7}])
def test_limits_are_an_object_or_a_dict(limits):
    """Airflow renders the templates in both; what holds none is checked at once, and a misspelt limit is refused."""
    made = task(limits=limits)
    assert made.limits == {"max_rows": "{{ 5 }}", "max_cost": 7}
    made.limits = {**made.limits, "max_rows": "5"}
    assert made.read_options().limits == Limits(max_rows=5, max_cost=7)
    for make in (lambda limits: Limits(**limits), lambda limits: task(limits=limits)):
        with pytest.raises(InputError, match=r"^limits: max_rows must be a whole number"):
            make({"max_rows": -1, "max_cost": "{{ 5 }}"})
        with pytest.raises(InputError, match=r"^limits has no 'max_row': it has min_rows, max_rows"):
            make({"max_row": 5})
    with pytest.raises(InputError, match=r"^limits must be Limits\(\.\.\.\), a dict of them, or None, not 5$"):
        task(limits=5)


PARAMS = {"dry": False, "few": 1, "enough": 2, "cost": 1.5, "nothing": None}


def send(**arguments):
    return BulkSmsOperator(task_id="send", source=ROWS, message="Hi", **arguments)


@pytest.mark.parametrize("native", [False, True], ids=["as text", "as objects"])
@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ({"dry_run": "{{ params.dry }}", "limits": {"max_rows": "{{ params.enough }}"}}, None),
        ({"dry_run": "{{ not params.dry }}"}, "Nothing is sent in a dry run"),
        ({"limits": {"max_rows": "{{ params.few }}"}}, "more rows than max_rows=1. Nothing"),
        ({"limits": {"max_cost": "{{ params.cost }}"}}, "more than max_cost=1.5"),
        ({"dry_run": "{{ params.nothing }}"}, "dry_run "),
        ({"limits": {"max_rows": "{{ params.nothing }}"}}, "limits: max_rows "),
        ({"limits": {"max_cost": "{{ params.few }}0 credits"}}, "limits: max_cost must be a number of credits"),
    ],
    ids=str,
)
def test_rendered_values_do_what_they_say(sms_default, ledger_path, sandbox, native, argument, says):
    """With and without native objects: a send that is no dry run texts everybody, and an error spends no retry."""
    ran = run_task(lambda: send(**argument), retries=2, params=PARAMS, render_template_as_native_obj=native)
    failed = says is not None and not says.startswith("Nothing")
    assert (ran.state, ran.tries) == ("failed" if failed else "success", 1)
    assert len(sandbox.state.accepted) == (2 if says is None else 0)
    assert (says or "") in ran.log


def states_of(make):
    """Run mapped copies of a task, and give the state and the tries of each."""
    run = run_task(make, only=None, retries=2, params=PARAMS)
    copies = sorted((ti for ti in run.get_task_instances() if ti.map_index >= 0), key=lambda ti: ti.map_index)
    return [(str(ti.state), ti.try_number) for ti in copies]


def mapped(**arguments):
    return BulkSmsOperator.partial(task_id="send", source=ROWS, message="Hi", **arguments)


LISTED = [None, {"max_rows": 2}, {"max_rows": 1}]


def literal():
    mapped(campaign="{{ ti.map_index }}").expand(limits=LISTED)


def returned():
    mapped(campaign="{{ ti.map_index }}").expand(limits=airflow_task(task_id="limits")(lambda: LISTED)())


def of_a_group():
    @task_group
    def texts(limit):
        send(limits={"max_rows": limit}, campaign="{{ ti.map_index }}")

    texts.expand(limit=[None, 2, 1])


@pytest.mark.parametrize("make", [literal, returned, of_a_group])
def test_mapped_tasks_may_have_no_limit(sms_default, ledger_path, sandbox, make):
    """``None`` in a list says so, in the DAG, in what another task returns, and in the argument of a task group."""
    assert states_of(make) == [("success", 1), ("success", 1), ("failed", 1)]
    assert len(sandbox.state.accepted) == 4
