"""Pages that only the site has: ``docs/conf.py`` writes them when it is built, out of the code that they describe."""

from __future__ import annotations

from contextlib import redirect_stdout, suppress
from io import StringIO

from airflow_provider_sms.cli.definitions import get_cli_commands
from airflow_provider_sms.cli.main import PROGRAM, main
from airflow_provider_sms.get_provider_info import get_provider_info

ORDER = (
    "../README",
    "quickstart",
    "operators",
    "sources",
    "texts",
    "before-sending",
    "failures",
    "ledger",
    "deploy",
    "service",
    "other-classes",
    "campaign-page",
    "sandbox",
    "security",
    "scale",
    "proof",
)
"""The stored pages, as a reader meets them."""

API = """
# API reference

**The names on this page are public and stable, under the import paths shown.** Everything else in the package is
private and may move or change in any version. Public as well: the [connection](service.md#connection) and its fields,
[`[sms]` settings](options.md), the [commands](commands.md), the shapes of [XComs](operators.md#what-they-return),
[metrics](deploy.md#metrics) and [tables of the ledger](ledger.md#tables).

## Operators

```{eval-rst}
.. autoclass:: airflow_provider_sms.operators.sms.BulkSmsOperator
.. autoclass:: airflow_provider_sms.operators.sms.GroupSmsOperator
.. autoclass:: airflow_provider_sms.operators.sms.Limits
.. autoclass:: airflow_provider_sms.operators.sms.PurgeLedgerOperator
.. autoclass:: airflow_provider_sms.operators.sms.SqlSource
.. autoclass:: airflow_provider_sms.operators.sms.SendWindow
   :members: closed_until
.. autodata:: airflow_provider_sms.operators.sms.SOUTH_AFRICAN_DIRECT_MARKETING
   :no-value:
```

## Decorator, notifier, sensor, trigger

In a DAG: `@task.bulk_sms`.

```{eval-rst}
.. autofunction:: airflow_provider_sms.decorators.bulk_sms.bulk_sms_task
.. autoclass:: airflow_provider_sms.notifications.sms.SmsNotifier
   :members: notify, async_notify
.. py:data:: airflow_provider_sms.notifications.sms.send_sms_notification

   Another name for ``SmsNotifier``.
.. autoclass:: airflow_provider_sms.sensors.balance.BalanceSensor
.. autoclass:: airflow_provider_sms.triggers.balance.BalanceTrigger
```

## Hook

```{eval-rst}
.. autoclass:: airflow_provider_sms.hooks.sms.SmsHook
   :members:
.. autoclass:: airflow_provider_sms.messages.message.Message
   :members:
.. automodule:: airflow_provider_sms.service.responses
   :members: SendResponse, NetworkCost, ErrorReport, Balance
```

## Errors

```{eval-rst}
.. automodule:: airflow_provider_sms.exceptions
   :members:
   :show-inheritance:
```

## Sandbox

```{eval-rst}
.. autoclass:: airflow_provider_sms.sandbox.config.SandboxConfig
.. autofunction:: airflow_provider_sms.sandbox.server.running_sandbox
.. autoclass:: airflow_provider_sms.sandbox.server.SandboxServer
   :members:
.. autoclass:: airflow_provider_sms.sandbox.state.SandboxState
   :members: balance, requests, accepted, accepted_messages, faults, set_balance, set_faults, reset
```

The fixture `sms_sandbox` of the pytest plugin `airflow_provider_sms.testing`:

```{eval-rst}
.. autoclass:: airflow_provider_sms.testing.sandbox.SmsSandbox
   :members:
```
"""


def commands() -> str:
    """Return the reference of the commands: what each prints with ``--help``."""
    (group,) = get_cli_commands()
    sections = ["# Command reference\n"]
    for command in group.subcommands:
        with redirect_stdout(StringIO()) as printed, suppress(SystemExit):
            main([command.name, "--help"])
        sections.append(f"## {PROGRAM} {command.name}\n\n```text\n{printed.getvalue()}```\n")
    return "\n".join(sections)


def options() -> str:
    """Return the table of the options of ``[sms]``, as Airflow is told of them."""
    lines = ["# Options of section [sms]\n", "| Option | Type | Default | Example | Meaning |", "|---|---|---|---|---|"]
    for name, option in get_provider_info()["config"]["sms"]["options"].items():
        default = f"`{option['default']}`" if option["default"] else "empty"
        meaning = option["description"].replace("``", "`")
        lines.append(f"| `{name}` | {option['type']} | {default} | `{option['example']}` | {meaning} |")
    return "\n".join([*lines, ""])


def index() -> str:
    """Return the first page: every other page, in order."""
    reference = [name for name in PAGES if name != "index"]
    pages = "\n".join([*ORDER, *reference, "../CHANGELOG", "../CONTRIBUTING", "../RELEASING"])
    return f"# airflow-provider-sms\n\n```{{toctree}}\n:maxdepth: 1\n\n{pages}\n```\n"


PAGES = {"index": index, "commands": commands, "options": options, "api": lambda: API}
"""Name of a page → its text."""
