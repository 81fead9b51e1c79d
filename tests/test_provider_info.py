from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from support.versions import AIRFLOW

from airflow_provider_sms import __version__
from airflow_provider_sms.get_provider_info import get_provider_info

ROOT = Path(__file__).parents[1]


def test_the_metadata_fits_airflows_schema():
    """Airflow validates provider metadata when it loads it."""
    from importlib.resources import files

    import jsonschema

    schema = json.loads(files("airflow").joinpath("provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_what_the_integration_refers_to_exists():
    """Logo and guides are files of this project."""
    (integration,) = get_provider_info()["integrations"]
    named = [integration["logo"], *integration["how-to-guide"]]
    assert [path for path in named if not (ROOT / path.removeprefix("/")).is_file()] == []


def test_the_version_stands_in_one_place():
    """Metadata, distribution and package agree on the version."""
    assert {version("airflow-provider-sms"), *get_provider_info()["versions"]} == {__version__}


FORM = """
import json
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService

(hook,) = [hook for hook in HookMetaService.hook_meta_data() if hook.connection_type == "sms"]
print(json.dumps([sorted(hook.extra_fields), hook.standard_fields.host.title, hook.standard_fields.url_schema.hidden]))
"""


@pytest.mark.skipif(AIRFLOW < (3, 2), reason="Airflow takes the form from the metadata since 3.2")
def test_the_form_of_a_connection_has_its_fields(airflow_home):
    """Airflow's own form has the fields of the extra, our names, and not what is of no use."""
    done = subprocess.run([sys.executable, "-c", FORM], capture_output=True, text=True, check=True)
    fields, host, hides_schema = json.loads(done.stdout.strip().splitlines()[-1])
    assert fields == ["allow_http", "balance_url", "billing", "connect_timeout", "timeout", "verify"]
    assert (host, hides_schema) == ("Base URL", True)


def test_parsing_a_dag_imports_nothing_heavy():
    """A DAG file is parsed every few seconds: pandas, pyarrow and fastapi are imported by running tasks only."""
    modules = [
        "airflow_provider_sms.get_provider_info",
        "airflow_provider_sms.operators.sms",
        "airflow_provider_sms.sensors.balance",
        "airflow_provider_sms.hooks.sms",
        "airflow_provider_sms.notifications.sms",
        "airflow_provider_sms.triggers.balance",
        "airflow_provider_sms.decorators.bulk_sms",
    ]
    heavy = "{'pandas', 'pyarrow', 'fastapi', 'numpy', 'phonenumbers', 'uvicorn'}"
    code = (
        "import importlib, sys\nfrom airflow.providers.common.compat.sdk import DAG\n"
        "of_airflow = set(sys.modules)\n"  # which loads some of it itself in 3.0
        f"for module in {modules}:\n"
        "    importlib.import_module(module)\n"
        f"    print(module, sorted({heavy} & (set(sys.modules) - of_airflow)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-len(modules) :] == [f"{module} []" for module in modules]


def test_the_metadata_imports_nothing_of_the_package_but_its_version():
    """Airflow reads metadata of every provider at every start."""
    code = (
        "import sys, airflow_provider_sms.get_provider_info as info; info.get_provider_info();"
        "print(sorted(m for m in sys.modules if m.startswith('airflow')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["['airflow_provider_sms',", "'airflow_provider_sms.get_provider_info']"]
