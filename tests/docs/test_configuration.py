from __future__ import annotations

import configparser
import json
import re

from support.pages import ROOT, blocks, generated

from airflow_provider_sms.get_provider_info import get_provider_info
from airflow_provider_sms.hooks.connection import client_settings

PAGE, SECURITY = ROOT / "docs" / "deploy.md", ROOT / "docs" / "security.md"
OPTIONS = get_provider_info()["config"]["sms"]["options"]


def test_the_table_has_every_option():
    """The site lists the options of the provider's metadata, each with its meaning."""
    assert re.findall(r"^\| `(\w+)` \|", generated("options"), re.MULTILINE) == list(OPTIONS)


def test_the_package_reads_the_options_and_no_others():
    """An option that no code reads, or that Airflow is not told of, is a mistake."""
    sources = "".join(path.read_text() for path in (ROOT / "airflow_provider_sms").rglob("*.py"))
    # Flags are read by one function, which names the option.
    assert set(re.findall(r'(?:conf\.get\w*\(\s*"sms", |_is_on\()"(\w+)"', sources)) == OPTIONS.keys()


def test_both_ways_to_set_an_option_say_the_same(airflow_home, monkeypatch):
    """What the page writes into the file, it writes into the environment, and Airflow and the package read it."""
    from airflow.providers.common.compat.sdk import conf

    parser = configparser.ConfigParser()
    (ini,) = blocks(PAGE, "ini")
    parser.read_string(ini.code)
    (exports,) = (block.code for block in blocks(PAGE, "sh") if "export AIRFLOW__SMS" in block.code)
    variables = dict(re.findall(r"^export (\w+)=(.*)$", exports, re.MULTILINE))
    assert {f"AIRFLOW__SMS__{name.upper()}": value for name, value in parser["sms"].items()} == variables
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert {name: conf.get("sms", name) for name in parser["sms"]} == dict(parser["sms"])


def test_the_forms_of_a_connection_are_read(airflow_home, monkeypatch, tmp_path):
    """The JSON form, and the file of several, make clients; Airflow reads the settings of backends as JSON."""
    from airflow.providers.common.compat.sdk import BaseHook
    from airflow.secrets.local_filesystem import LocalFilesystemBackend

    one, several = (block.code for block in blocks(SECURITY, "json"))
    monkeypatch.setenv("AIRFLOW_CONN_FROM_JSON", one)
    (tmp_path / "connections.json").write_text(several)
    backend = LocalFilesystemBackend(connections_file_path=str(tmp_path / "connections.json"))
    for connection in (BaseHook.get_connection("from_json"), backend.get_connection("sms_default")):
        settings = client_settings(connection, connection.extra_dejson)
        assert settings.base_url == "https://rest.example.com/v1"
        assert (settings.token or settings.client_secret).startswith("THE-")
    kwargs = [re.findall(r"^backend_kwargs = (.*)$", each.code, re.MULTILINE) for each in blocks(SECURITY, "ini")]
    assert all(json.loads(text) for (text,) in kwargs)
