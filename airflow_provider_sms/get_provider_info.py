"""The provider's metadata, as Airflow reads it."""

from __future__ import annotations

from typing import Any

from airflow_provider_sms import __version__

_NAME = "SMS"


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata in Airflow's schema."""
    return {
        "package-name": "airflow-provider-sms",
        "name": _NAME,
        "description": "Texts a table of people by SMS, each exactly as often as intended: ``BulkSmsOperator`` and the "
        "ledger that it keeps of who was texted.",
        "versions": [__version__],
        "integrations": [
            {
                "integration-name": _NAME,
                "how-to-guide": ["/docs/quickstart.md", "/docs/operators.md"],
                "logo": "/docs/integration-logos/sms.svg",
                "tags": ["service"],
            }
        ],
        "hooks": [{"integration-name": _NAME, "python-modules": ["airflow_provider_sms.hooks.sms"]}],
        "operators": [{"integration-name": _NAME, "python-modules": ["airflow_provider_sms.operators.sms"]}],
        "sensors": [{"integration-name": _NAME, "python-modules": ["airflow_provider_sms.sensors.balance"]}],
        "task-decorators": [
            {"name": "bulk_sms", "class-name": "airflow_provider_sms.decorators.bulk_sms.bulk_sms_task"}
        ],
        "triggers": [{"integration-name": _NAME, "python-modules": ["airflow_provider_sms.triggers.balance"]}],
        "notifications": ["airflow_provider_sms.notifications.sms.SmsNotifier"],
        "cli": ["airflow_provider_sms.cli.definitions.get_cli_commands"],
        "connection-types": [
            {
                "connection-type": "sms",
                "hook-class-name": "airflow_provider_sms.hooks.sms.SmsHook",
                "hook-name": _NAME,
                "conn-fields": _connection_fields(),
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "port"],
                    "relabeling": {
                        "host": "Base URL",
                        "login": "Client id (optional)",
                        "password": "Token or API secret",
                    },
                    "placeholders": {"host": "https://rest.example.com/v1"},
                },
            }
        ],
        "config": {
            "sms": {
                "description": "Settings of airflow-provider-sms.",
                "options": {
                    "ledger_conn_id": {
                        "description": "Airflow connection to the PostgreSQL database that holds the ledger, for tasks "
                        "that run on several machines. Empty: a file of this machine.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "sms_ledger",
                        "default": "",
                    },
                    "allow_local_ledger": {
                        "description": "Whether the ledger may be a file although the executor runs tasks on several "
                        "machines. Set it only if all of them share one local disk.",
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": "True",
                        "default": "False",
                    },
                    "ledger_path": {
                        "description": "SQLite file of the ledger, which remembers who was texted. Empty: "
                        "``sms_ledger.db`` in AIRFLOW_HOME. It must be on a disk of this machine.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "/var/lib/airflow/sms_ledger.db",
                        "default": "",
                    },
                    "require_synchronous_standby": {
                        "description": "Whether a ledger in PostgreSQL is refused unless its commits wait for a "
                        "standby server: without one, a failover can lose the last claims, and people are texted "
                        "twice. The ledger is also refused if no such standby is attached, or if the connection's "
                        "user may not see it (that needs the role pg_monitor).",
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": "True",
                        "default": "False",
                    },
                    "ledger_patience": {
                        "description": "Seconds for which a task whose ledger is away opens, reads and records again, "
                        "by new connections, without claiming anything more. So for as long after its claim another "
                        "task expects the outcome of a lapsed claim, and fails so that Airflow retries it; then the "
                        "request is unknown.",
                        "version_added": "0.1.0",
                        "type": "float",
                        "example": "60",
                        "default": "300",
                    },
                    "retention_days": {
                        "description": "Days without activity after which ``PurgeLedgerOperator`` forgets a campaign, "
                        "with everybody whom it texted. 0: never. No task that sends forgets anything.",
                        "version_added": "0.1.0",
                        "type": "integer",
                        "example": "90",
                        "default": "0",
                    },
                },
            }
        },
    }


def _connection_fields() -> dict[str, Any]:
    return {
        "balance_url": {
            "label": "Balance URL",
            "description": "Base URL of the balance call, where it differs from the base URL.",
            "schema": {"type": ["string", "null"]},
        },
        "allow_http": {
            "label": "Allow http://",
            "description": "Whether the token may go to another machine without encryption.",
            "schema": {"type": ["boolean", "null"], "default": False},
        },
        "timeout": {
            "label": "Timeout (seconds)",
            "description": "How long to wait for an answer.",
            "schema": {"type": ["number", "null"], "default": 30},
        },
        "connect_timeout": {
            "label": "Connect timeout (seconds)",
            "description": "How long to wait for a connection.",
            "schema": {"type": ["number", "null"], "default": 5},
        },
        "verify": {
            "label": "CA bundle",
            "description": "Path of a CA bundle; empty for the usual ones.",
            "schema": {"type": ["string", "null"]},
        },
        "billing": {
            "label": "Billing",
            "description": "auto: a balance of exactly 1000000 is a post-paid account.",
            "schema": {
                "type": ["string", "null"],
                "enum": ["auto", "prepaid", "postpaid"],
                "default": "auto",
            },
        },
    }
