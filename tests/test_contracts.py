"""What must stay as it is wherever its code lives: ledgers, Airflow's database, DAG files and dashboards hold it.

Pinned elsewhere, and with them the ``person`` tags of BLAKE2b: the digests of keys and of plans
(``messages/test_keys.py``); the events of the trigger (``triggers/test_balance.py``).
"""

from __future__ import annotations

import importlib
import inspect
import re
import sqlite3
from contextlib import closing
from importlib.metadata import distribution
from importlib.util import find_spec

import pytest
from support.airflow import run_task
from support.pages import PAGES, ROOT, generated

from airflow_provider_sms import exceptions
from airflow_provider_sms.execution.waits import RESUME_METHOD
from airflow_provider_sms.execution.xcom import PLAN as PLAN_XCOM
from airflow_provider_sms.get_provider_info import get_provider_info
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.ledger.attempts import ADOPTION
from airflow_provider_sms.ledger.backend import LEDGER_LOCK, campaign_lock
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, DEFERRED, NOT_SENT, SUPERSEDED, UNKNOWN
from airflow_provider_sms.ledger.schema import metadata
from airflow_provider_sms.monitoring.status import _BUSY_SECONDS, _WAITS
from airflow_provider_sms.notifications.sms import SmsNotifier
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator, PurgeLedgerOperator, SendWindow
from airflow_provider_sms.reporting.row_counts import COUNTS, RowCounts
from airflow_provider_sms.reporting.row_report import SCHEMA
from airflow_provider_sms.reporting.summary import Sums, summarise
from airflow_provider_sms.sensors.balance import BalanceSensor
from airflow_provider_sms.triggers.balance import BalanceTrigger

PACKAGE = "airflow_provider_sms"

# Locks: workers of two versions may share a ledger.

CAMPAIGN_LOCKS = {
    "spring": 8653182313162418050,
    "dag/send/manual__2026-01-01T00:00:00+00:00": -7486887534364532247,
    "Frühling 😀": -1481332075118718140,
}


def test_locks_keep_their_numbers():
    """Two versions of the package wait for each other only under the same numbers; a campaign's is of its name."""
    assert LEDGER_LOCK == 1398099283
    assert {name: campaign_lock(name) for name in CAMPAIGN_LOCKS} == CAMPAIGN_LOCKS


# What the ledger holds.


def test_stored_words_stay():
    """States, decisions, statuses and waits are read by later versions, and by whoever reads ledgers and reports."""
    states = (CLAIMED, ACCEPTED, UNKNOWN, NOT_SENT, SUPERSEDED)
    assert states == ("claimed", "accepted", "unknown", "not_sent", "superseded")
    assert " ".join(COUNTS) == "accepted unknown not_sent invalid duplicate suppressed already_sent"
    assert set(DEFERRED) == _WAITS.keys() == {"waiting for credit", "waiting for hours"}
    assert _BUSY_SECONDS.keys() == {"checking", "sending", "paused"}
    # A person answers for a ledger as the attempt before the first one.
    assert ADOPTION == 0


TABLES = {
    "sms_version": "version",
    "sms_campaign": "id name created_at paused_by paused_at resumed_by resumed_at",
    "sms_attempt": "id dag_id task_id run_id map_index try_number host pid started_at campaign_id conn_id state "
    "updated_at total done not_sent invalid rate figures plan",
    "sms_request": "id campaign_id attempt_id kind state submitted claimed_at deadline finished_at http_status "
    "event_id messages parts cost reason response account planned_parts planned_cost evidence decision decided_by "
    "decided_at",
    "sms_message": "campaign_id message_key destination request_id",
    "sms_superseded": "campaign_id message_key request_id destination",
    "sms_balance": "id account asked_at read_at amount",
}
INDEXES = {
    "sms_attempt_run": "dag_id run_id",
    "sms_attempt_campaign": "campaign_id",
    "sms_request_campaign_state": "campaign_id state",
    "sms_request_attempt": "attempt_id",
    "sms_request_campaign_event": "campaign_id event_id",
    "sms_request_account": "account claimed_at",
    "sms_message_request": "request_id",
    "sms_superseded_request": "request_id",
    "sms_balance_account": "account read_at",
}


def test_the_ledger_keeps_its_tables():
    """Tables, columns and indexes have these names."""
    tables = metadata.tables.values()
    assert {table.name: " ".join(table.columns.keys()) for table in tables} == TABLES
    assert {i.name: " ".join(i.columns.keys()) for table in tables for i in table.indexes} == INDEXES


# What Airflow holds: XComs, task state, deferred tasks.

SUMMARY = (
    "campaign", "rows", "accepted", "unknown", "not_sent", "invalid", "duplicate", "suppressed", "already_sent",
    "reconciled", "left_out", "requests", "parts", "cost", "remaining_balance",
    "cost_breakdown", "error_report", "report",
)  # fmt: skip
PLAN = (
    "id", "campaign", "rows", "valid", "invalid", "duplicate", "suppressed", "already_sent", "unknown", "to_send",
    "repeats", "requests", "parts", "cost", "balance", "post_paid", "texts", "markdown",
)  # fmt: skip
TEXTS = ("ucs2_messages", "ucs2_parts", "most_parts", "most_parts_row", "forcing")


def pushed(ran):
    """Return the keys of a run's XComs."""
    return set(ran.xcoms)


def kinds(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT DISTINCT kind FROM sms_request").fetchall()


def test_a_send_leaves_these_xcoms(sms_default, ledger_path):
    """Later tasks read these keys; the plan's id and the kind of request stand in the ledger, too."""
    rows = [{"destination": "27820000000"}, {"destination": "27820000001"}]
    ran = run_task(lambda: BulkSmsOperator(task_id="send", source=rows, message="Hi", campaign="c"))
    assert pushed(ran) == {"plan", "return_value", "responses"}
    assert (ran.summary.keys(), ran.xcoms["plan"].keys()) == (set(SUMMARY), set(PLAN))
    assert (ran.xcoms["plan"]["id"], kinds(ledger_path)) == ("09ff04712c8c-44f9055f-2-2-0", [("bulk",)])
    assert ran.xcoms["plan"]["texts"].keys() == set(TEXTS)
    assert ran.xcoms["plan"]["suppressed"] == 0
    (response,) = ran.xcoms["responses"]
    assert {"EventId", "Messages", "Parts", "Cost", "RemainingBalance", "ErrorReport"} <= response.keys()
    assert summarise("spring", RowCounts(), Sums()).keys() == set(SUMMARY)


def test_a_send_to_groups_leaves_these_xcoms(sms_default, ledger_path):
    """The answer is the task's result."""
    ran = run_task(lambda: GroupSmsOperator(task_id="text", message="Hi", groups=["staff"]))
    assert pushed(ran) == {"return_value", "responses"}
    assert kinds(ledger_path) == [("group",)]


def test_a_deferred_task_is_resumed_by_this_method():
    """Its name and its arguments are in Airflow's database while a task waits."""
    assert (RESUME_METHOD, PLAN_XCOM) == ("execute_complete", "plan")
    for method in (BulkSmsOperator.execute_complete, BalanceSensor.execute_complete):
        assert list(inspect.signature(method).parameters)[:3] == ["self", "context", "event"]


def test_the_trigger_keeps_its_path_and_arguments():
    """Airflow's database holds both for as long as a task waits; what is not given has a default."""
    path, arguments = BalanceTrigger("sms_default", "10.5", 60.0).serialize()
    assert path == "airflow_provider_sms.triggers.balance.BalanceTrigger"
    assert arguments == {
        "sms_conn_id": "sms_default",
        "min_balance": "10.5",
        "poke_interval": 60.0,
        "started_at": None,
        "timeout": None,
    }


def test_the_report_keeps_its_columns():
    """People read the Parquet file by these names and types."""
    assert [(field.name, str(field.type)) for field in SCHEMA] == [
        ("row", "int64"),
        ("destination", "string"),
        ("status", "string"),
        ("reason", "string"),
        ("request_id", "int64"),
        ("event_id", "int64"),
        ("sent_at", "timestamp[us, tz=UTC]"),
    ]


# What DAG files hold.

NEEDED = inspect.Parameter.empty
TEMPLATED = {
    BulkSmsOperator: "source message send_options campaign report suppress sms_conn_id ledger_conn_id dry_run limits "
    "approved_plan",
    GroupSmsOperator: "message groups send_options campaign sms_conn_id ledger_conn_id",
    BalanceSensor: "min_balance sms_conn_id",
    SmsNotifier: "message to sms_conn_id send_options",
}


def parameters_of(kind):
    """Return the parameters of a class and its bases in this package."""
    found = {}
    for base in kind.__mro__:
        if base.__module__.startswith(PACKAGE) and "__init__" in vars(base):
            for name, each in inspect.signature(base.__init__).parameters.items():
                if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
                    found.setdefault(name, each.default)
    return {name: default for name, default in found.items() if name != "self"}


def test_a_window_keeps_its_parameters():
    """A DAG file means tomorrow what it meant yesterday; of other classes, the pages say the parameters."""
    optional = {"weekdays": None, "holidays": None, "hours": None, "recipient_time_zone": False}
    assert parameters_of(SendWindow) == {**dict.fromkeys(("start", "end", "timezone"), NEEDED), **optional}


PAGES_OF = [
    (BulkSmsOperator, "operators.md", "## BulkSmsOperator", "## GroupSmsOperator"),
    (GroupSmsOperator, "operators.md", "## GroupSmsOperator", "## PurgeLedgerOperator"),
    (PurgeLedgerOperator, "operators.md", "## PurgeLedgerOperator", "## What they return"),
    (SmsNotifier, "other-classes.md", "## Notifier", "### Default text"),
    (BalanceSensor, "other-classes.md", "## Sensor", "### Where it waits"),
]


@pytest.mark.parametrize(("kind", "page", "first", "last"), PAGES_OF, ids=lambda each: getattr(each, "__name__", ""))
def test_a_page_lists_every_parameter_with_its_default(kind, page, first, last):
    """The tables of a page name each parameter of the class, no other one, and its default; (T) marks templates.

    So no name and no default changes unless the page does, and with it what people have written in DAG files.
    """
    text = (ROOT / "docs" / page).read_text()
    section = text[text.index(f"\n{first}\n") : text.index(f"\n{last}\n")]
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", section, re.MULTILINE)
    shown = {name: default.strip("`") for names, default in rows for name in re.findall(r"`(\w+)`", names)}
    if page == "operators.md":
        assert {name for names, _ in rows for name in re.findall(r"`(\w+)` \(T\)", names)} == set(kind.template_fields)
    # Its default is a setting of Airflow.
    assert "default_deferrable" in shown.pop("deferrable", "default_deferrable")
    assert shown == {
        name: "required" if default is NEEDED else repr(default).replace("'", '"')
        for name, default in parameters_of(kind).items()
        if name != "deferrable"
    }


HOOK = {
    "get_conn": [],
    "send_bulk": ["messages", "send_options"],
    "send_group": ["message", "groups", "send_options"],
    "get_balance": [],
    "test_connection": [],
}


def test_the_hook_keeps_its_methods():
    """A task of one's own calls these."""
    assert {name: list(inspect.signature(getattr(SmsHook, name)).parameters)[1:] for name in HOOK} == HOOK


@pytest.mark.parametrize("kind", TEMPLATED, ids=lambda kind: kind.__name__)
def test_templated_fields_stay(kind):
    """A template in one of these is rendered, in this order."""
    assert " ".join(kind.template_fields) == TEMPLATED[kind]


ERRORS = (
    "SmsError", "InputError", "SourceError", "SourceUnavailableError", "NoConnectionError", "ColumnError",
    "TemplateError", "InvalidRowsError", "LimitError", "ServiceError", "NotSentError", "ThrottledError",
    "AuthenticationError", "RefusedError", "UnknownOutcomeError", "LedgerError", "LedgerVersionError",
    "LedgerLostError", "LedgerAwayError", "LedgerBusyError", "CreditError", "TooManyErrorsError",
    "OutageError", "StoppedError",
)  # fmt: skip
DOCUMENTED = [
    "operators.sms.BulkSmsOperator",
    "operators.sms.GroupSmsOperator",
    "operators.sms.Limits",
    "operators.sms.PurgeLedgerOperator",
    "operators.sms.SqlSource",
    "operators.sms.SendWindow",
    "operators.sms.SOUTH_AFRICAN_DIRECT_MARKETING",
    "decorators.bulk_sms.bulk_sms_task",
    "notifications.sms.SmsNotifier",
    "sensors.balance.BalanceSensor",
    "triggers.balance.BalanceTrigger",
    "hooks.sms.SmsHook",
    "messages.message.Message",
    "service.responses.SendResponse",
    "service.responses.NetworkCost",
    "service.responses.ErrorReport",
    "service.responses.Balance",
    *(f"exceptions.{name}" for name in ERRORS),
    "sandbox.config.SandboxConfig",
    "sandbox.server.running_sandbox",
    "sandbox.server.SandboxServer",
    "sandbox.state.SandboxState",
    "testing.sandbox.SmsSandbox",
]
TOLD_TO_AIRFLOW = {
    "hooks.sms",
    "operators.sms",
    "sensors.balance",
    "decorators.bulk_sms.bulk_sms_task",
    "triggers.balance",
    "notifications.sms.SmsNotifier",
    "cli.definitions.get_cli_commands",
    "hooks.sms.SmsHook",
}
ENTRY_POINTS = {
    ("apache_airflow_provider", "provider_info", "get_provider_info:get_provider_info"),
    ("airflow.plugins", "sms", "plugins.sms:SmsPlugin"),
    ("console_scripts", "airflow-sms", "cli.main:main"),
}


def imported(path):
    """Import a module, or a name out of one."""
    if find_spec(path.rpartition(".")[0]).submodule_search_locations is not None and find_spec(path) is not None:
        return importlib.import_module(path)
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_the_reference_names_these_paths():
    """The page of the reference names what is pinned here and nothing else, and each can be imported by its path."""
    page = generated("api")
    found = set(re.findall(rf"auto(?:class|data|function):: {PACKAGE}\.(\S+)", page))
    for module, members in re.findall(rf"automodule:: {PACKAGE}\.(\S+)\n   :members:(.*)", page):
        names = members.replace(",", " ").split() or ERRORS
        found.update(f"{module}.{name}" for name in names)
    own = {name for name, each in vars(exceptions).items() if getattr(each, "__module__", "") == exceptions.__name__}
    assert (found, own) == (set(DOCUMENTED), set(ERRORS))
    assert [path for path in DOCUMENTED if imported(f"{PACKAGE}.{path}") is None] == []


@pytest.mark.parametrize("path", DOCUMENTED)
def test_every_parameter_is_documented(path):
    """A public class has ``:param:`` for each parameter, those that its own bases take as well, and for no other."""
    kind = imported(f"{PACKAGE}.{path}")
    if inspect.isclass(kind) and "__init__" in vars(kind):
        is_checked = hasattr(kind, "__pydantic_validator__")  # then its initialiser takes anything
        parameters = inspect.signature(kind).parameters if is_checked else parameters_of(kind)
        assert set(parameters) == set(re.findall(r":param (\w+):", kind.__doc__))


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("dags/*.py"))], ids=lambda page: page.name)
def test_pages_and_examples_import_what_is_documented(page):
    """By the paths of the reference, such as ``SendWindow`` from the module of the operators."""
    found = re.findall(rf"^ *from {PACKAGE}\.(\S*) import (.+)$", page.read_text(), re.MULTILINE)
    named = [f"{module}.{name.strip()}" for module, names in found for name in names.split(",")]
    assert [path for path in named if path not in DOCUMENTED] == []


def strings(value):
    """Return every string in the provider metadata."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return [each for part in value for each in strings(part)]
    return [value] if isinstance(value, str) else []


def test_airflow_is_told_these_paths():
    """Airflow's metadata names these modules and classes, and each can be imported."""
    found = {each.removeprefix(f"{PACKAGE}.") for each in strings(get_provider_info()) if each.startswith(PACKAGE)}
    assert found == TOLD_TO_AIRFLOW
    assert all(imported(f"{PACKAGE}.{path}") is not None for path in found)


def test_entry_points_keep_their_paths():
    """What is installed finds the provider, its plugin and its command at these places; so does ``python -m``."""
    points = distribution("airflow-provider-sms").entry_points
    assert {(p.group, p.name, p.value.removeprefix(f"{PACKAGE}.")) for p in points} == ENTRY_POINTS
    assert all(callable(point.load()) for point in points)
    assert find_spec(f"{PACKAGE}.sandbox.__main__") is not None
