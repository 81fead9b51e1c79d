"""A real Airflow with users of several roles, who view campaigns while they are sent."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.faults.airflow import TOKEN, a_ledger
from support.faults.rest import ENDED, RUN_SECONDS, until
from support.faults.standalone import running_airflow

RUN, TASK = "morning", "send"
USERS = {"ann": "admin", "ed": "user", "vic": "viewer"}
"""Users by role, the admin first; each password is the user's name."""
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title="pwned"</script>"\'&amp;'

DAGS = """
from datetime import datetime, timezone

from airflow.providers.common.compat.sdk import DAG
from airflow_provider_sms.operators.sms import BulkSmsOperator

for dag_id, options in {dags!r}.items():
    with DAG(dag_id, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)) as dag:
        BulkSmsOperator(task_id={task!r}, default_region="ZA", on_invalid="skip", **options)
    globals()[dag_id] = dag
"""

SETTINGS = {
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in USERS.items()),
    # Airflow sometimes starts a task before it has marked it as queued, and then treats it as failed.
    "AIRFLOW__CORE__DEFAULT_TASK_RETRIES": "2",
    "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "1",
}


@dataclass
class CampaignSite:
    """The site and its parts."""

    airflow: Any
    """Airflow's API, with the admin's rights."""
    services: dict[str, Any]
    """The memory of each sandbox, by connection."""

    def await_state(self, dag_id, *states):
        """Wait until a campaign's task is in one of some states, by default until it has ended."""
        wanted = states or ENDED

        def reached():
            (instance,) = self.airflow.instances(dag_id, RUN)
            return instance["state"] in wanted

        until(reached, seconds=RUN_SECONDS, what=f"{dag_id} is {wanted}", every=0.5)

    @contextmanager
    def page(self, browser, name, path="/plugin/sms", **how):
        """Open a page of Airflow as a user, who has signed in through the form."""
        # Airflow's own page asks who is there before anybody has signed in.
        expected = (r"401.*/ui/config", r"401 \(Unauthorized\)")
        with browser.page(f"{self.airflow.url}/", expected=expected, **how) as page:
            page.get_by_label("Username").fill(name)
            page.get_by_label("Password").fill(name)
            page.get_by_role("button", name="Sign in").click()
            # A page that is opened before the sign-in ends has no user yet.
            page.get_by_role("link", name="Home").last.wait_for()
            page.goto(self.airflow.url + path)
            yield page


@contextmanager
def running_site(folder, dags, services, more=None):
    """Run the site in a folder, with the DAGs that are there. Leaving the context ends all of its processes.

    :param dags: arguments of the operator, by DAG, with those of its table of people as its source.
    :param services: settings of each sandbox, by connection.
    :param more: environment variables of the Airflow.
    """
    home = folder / "airflow"
    (home / "dags").mkdir(parents=True, exist_ok=True)
    sources = {name: write_people(folder / f"{name}.parquet", **options["source"]) for name, options in dags.items()}
    dags = {name: {**options, "source": sources[name]} for name, options in dags.items()}
    (home / "dags" / "campaigns.py").write_text(DAGS.format(dags=dags, task=TASK))
    (home / "simple_auth_manager_passwords.json.generated").write_text(json.dumps({name: name for name in USERS}))
    with ExitStack() as stack:
        settings, _ = stack.enter_context(a_ledger("postgresql", folder))
        settings |= {**SETTINGS, **(more or {})}
        memories = {}
        for conn_id, config in services.items():
            sandbox = stack.enter_context(running_sandbox(SandboxConfig(token=TOKEN, **config)))
            memories[conn_id] = sandbox.state
            connection = {"conn_type": "sms", "host": sandbox.base_url, "password": TOKEN, "extra": {"timeout": 5}}
            settings[f"AIRFLOW_CONN_{conn_id.upper()}"] = json.dumps(connection)
        airflow = stack.enter_context(running_airflow(home, settings))
        yield CampaignSite(airflow, memories)


def write_people(path, count, *, first=27_820_000_000, names=("Thandi", "Zoë", "Pieter", "Lerato"), invalid=0):
    """Write a table of people, with unassigned numbers that begin like South African ones, and return its path."""
    path.parent.mkdir(exist_ok=True)
    numbers = [str(first + number) for number in range(count)] + ["not a number"] * invalid
    rows = range(len(numbers))
    table = {
        "destination": numbers,
        "first_name": [names[row % len(names)] for row in rows],
        "invoice": [f"INV-{1041 + row}" for row in rows],
        "amount": [89.5 + row * 37 % 1900 for row in rows],
        "city": ["Durban"] * len(numbers),
    }
    pq.write_table(pa.table(table), path)
    return str(path)
