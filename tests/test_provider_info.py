from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib.metadata import entry_points, version

import pytest

from airflow_provider_sms import __version__
from airflow_provider_sms.get_provider_info import get_provider_info


def test_airflow_finds_the_provider():
    """The entry point gives the metadata, under the distribution's own name."""
    (entry,) = [e for e in entry_points(group="apache_airflow_provider") if e.dist.name == "airflow-provider-sms"]
    assert entry.load()()["package-name"] == "airflow-provider-sms"


def test_the_metadata_fits_airflows_schema():
    """Airflow validates provider metadata when it loads it."""
    from importlib.resources import files

    import jsonschema

    schema = json.loads(files("airflow").joinpath("provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_the_version_stands_in_one_place():
    """Metadata, distribution and package agree on the version."""
    assert {version("airflow-provider-sms"), *get_provider_info()["versions"]} == {__version__}


def test_every_module_named_exists():
    """What the metadata names can be imported."""
    info = get_provider_info()
    for kind in ("hooks", "operators", "sensors", "triggers"):
        for entry in info[kind]:
            for module in entry["python-modules"]:
                importlib.import_module(module)


def test_airflow_knows_the_connection_type(airflow_home):
    """Airflow's own manager offers the connection type, with the hook behind it and the fields of its form."""
    command = [sys.executable, "-m", "airflow", "providers", "hooks", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (hook,) = [hook for hook in json.loads(done.stdout) if hook["connection_type"] == "sms"]
    assert (hook["class"], hook["conn_id_attribute_name"]) == (
        "airflow_provider_sms.hooks.sms.SmsHook",
        "sms_conn_id",
    )
    (connection_type,) = get_provider_info()["connection-types"]
    assert set(connection_type["conn-fields"]) == {"balance_url", "timeout", "connect_timeout", "verify", "billing"}


def test_the_configuration_section_is_documented(airflow_home):
    """``[sms]`` has descriptions and defaults that Airflow shows and uses."""
    from airflow.configuration import conf

    assert conf.get("sms", "ledger_path", fallback="missing") in ("", "missing")
    options = get_provider_info()["config"]["sms"]["options"]
    for option in options.values():
        assert option.keys() == {"description", "version_added", "type", "example", "default"}


@pytest.mark.parametrize(
    "module",
    [
        "airflow_provider_sms.get_provider_info",
        "airflow_provider_sms.operators.sms",
        "airflow_provider_sms.sensors.balance",
        "airflow_provider_sms.hooks.sms",
        "airflow_provider_sms.triggers.balance",
        "airflow_provider_sms.decorators.bulk_sms",
    ],
)
def test_parsing_a_dag_imports_nothing_heavy(module):
    """A DAG file is parsed every few seconds: pandas, pyarrow and fastapi are imported by running tasks only."""
    heavy = "{'pandas', 'pyarrow', 'fastapi', 'numpy', 'phonenumbers', 'uvicorn'}"
    code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_the_metadata_imports_nothing_of_the_package_but_its_version():
    """Airflow reads metadata of every provider at every start."""
    code = (
        "import sys, airflow_provider_sms.get_provider_info as info; info.get_provider_info();"
        "print(sorted(m for m in sys.modules if m.startswith('airflow')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["['airflow_provider_sms',", "'airflow_provider_sms.get_provider_info']"]
