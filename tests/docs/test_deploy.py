"""The files of ``docs/deploy``: checked against Airflow's settings, and run as far as they can be."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import closing
from functools import cache
from types import SimpleNamespace

import yaml
from support.cluster import LONGEST, _binaries, running_node
from support.keys import request_of
from support.pages import ROOT, blocks
from support.sending import claimant, people

from airflow_provider_sms.get_provider_info import get_provider_info
from airflow_provider_sms.hooks.connection import client_settings
from airflow_provider_sms.hooks.ledger import postgres_url
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, Outcome
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.sending.sender import MARGIN_SECONDS
from airflow_provider_sms.service.client import SmsClient

DEPLOY = ROOT / "docs" / "deploy"
PAGE = ROOT / "docs" / "deploy.md"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
VALUES = yaml.safe_load((DEPLOY / "helm-values.yaml").read_text())
KUBERNETES = yaml.safe_load((DEPLOY / "helm-values-kubernetes.yaml").read_text())
AIRFLOW_VERSION = "3.3.2"


def environment(service):
    return SERVICES[service].get("environment", {})


def made_secrets():
    """Return what ``make-secrets.sh`` prints, by name."""
    done = subprocess.run(["sh", DEPLOY / "make-secrets.sh"], capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def filled(written, secrets):
    """Return a text with the secrets in it, as Compose does."""
    return re.sub(r"\$\{(\w+)(?::\?[^}]*)?\}", lambda match: secrets[match[1]], written)


@cache
def known_settings():
    """Return the sections of Airflow's configuration and of its providers, with their options."""
    from airflow.configuration import conf
    from airflow.providers_manager import ProvidersManager

    ProvidersManager().initialize_providers_configuration()
    known = {name: set(section["options"]) for name, section in conf.configuration_description.items()}
    return {**known, "sms": set(get_provider_info()["config"]["sms"]["options"])}


def test_each_setting_is_one_of_airflow_or_of_a_provider(airflow_home):
    """A misspelt one would be ignored, without a word."""
    used = {
        tuple(name.removeprefix("AIRFLOW__").lower().split("__"))
        for service in SERVICES
        for name in environment(service)
        if name.startswith("AIRFLOW__")
    }
    used |= {(section, option) for section, options in VALUES["config"].items() for option in options}
    assert len(used) > 10
    assert {(section, option) for section, option in used if option not in known_settings().get(section, ())} == set()


def test_versions_are_named_and_the_same_everywhere():
    """No image is whatever is newest on the day; the tests run on this Airflow."""
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert re.findall(r"^FROM (.*)$", dockerfile, re.MULTILINE) == [f"apache/airflow:{AIRFLOW_VERSION}"]
    images = {service["image"] for service in SERVICES.values()}
    assert {image for image in images if not re.search(r":\d[\w.-]*$", image)} == set()
    assert f"airflow-sms:{AIRFLOW_VERSION}" in images
    assert (VALUES["airflowVersion"], VALUES["defaultAirflowTag"]) == (AIRFLOW_VERSION, AIRFLOW_VERSION)
    assert f'NEWEST = "{AIRFLOW_VERSION}"' in (ROOT / "noxfile.py").read_text()


def test_a_task_has_time_to_send_and_to_stop():
    """Celery delivers no task again that still sends, and a pod that stops has the time of the longest claim."""
    celery = int(environment("worker")["AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT"])
    assert celery == VALUES["config"]["celery_broker_transport_options"]["visibility_timeout"] >= 86_400
    longest = SmsClient("https://rest.example.com/v1", client_id="c", client_secret="s").longest_call
    claim = 2 * longest + MARGIN_SECONDS
    assert KUBERNETES["workers"]["kubernetes"]["terminationGracePeriodSeconds"] >= claim
    assert environment("worker")["DUMB_INIT_SETSID"] == "0"


def test_the_secrets_of_the_page_are_those_of_the_values():
    """Whoever follows the page has each secret, with the key that the chart reads."""
    (code,) = [block.code for block in blocks(PAGE, "sh") if "kubectl create namespace" in block.code]
    made = dict(re.findall(r"secret generic (\S+) \\\n  --from-literal=([\w-]+)=", code))
    assert made == {
        VALUES["data"]["metadataSecretName"]: "connection",
        VALUES["fernetKeySecretName"]: "fernet-key",
        VALUES["apiSecretKeySecretName"]: "api-secret-key",
        VALUES["jwtSecretName"]: "jwt-secret",
        yaml.safe_load(VALUES["extraEnvFrom"])[0]["secretRef"]["name"]: "AIRFLOW_CONN_SMS_LEDGER",
    }
    connections = {name: json.loads(written) for name, written in re.findall(r"AIRFLOW_CONN_(\w+)='(.*)'", code)}
    assert connections["SMS_LEDGER"]["extra"]["sslmode"] == "verify-full"
    assert connections["SMS_DEFAULT"]["host"].startswith("https://")


def test_each_secret_of_the_compose_file_is_made():
    """By the script, another one each time; and nothing is made that nobody uses."""
    used = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    first, second = made_secrets(), made_secrets()
    assert used == first.keys()
    assert {name for name in first if first[name] == second[name]} == set()
    from cryptography.fernet import Fernet

    Fernet(first["AIRFLOW_FERNET_KEY"])


def test_the_connections_of_the_compose_file_are_read():
    """The ledger's lead to its role, and the account's to the sandbox's door, which leads to the sandbox's port."""
    from airflow_provider_sms.sandbox.__main__ import _parser

    secrets = made_secrets()

    def read(service, name):
        fields = json.loads(filled(environment(service)[name], secrets))
        extra = fields.get("extra", {})
        return SimpleNamespace(**{"login": None, "port": None, "schema": None, "conn_id": "c", **fields}), extra

    for service in ("worker", "api-server"):
        url = postgres_url(*read(service, "AIRFLOW_CONN_SMS_LEDGER"))
        assert (url.username, url.database, url.host) == ("sms", "sms", "postgres")
    settings = client_settings(*read("worker", "AIRFLOW_CONN_SMS_DEFAULT"))
    assert (settings.base_url, settings.token) == ("http://sandbox-door:8080/v1", secrets["SMS_TOKEN"])
    command = [filled(each, secrets) for each in SERVICES["sandbox"]["command"]]
    assert f"http://127.0.0.1:{_parser().parse_args(command).port}" in COMPOSE["configs"]["sandbox-door"]["content"]


def test_the_databases_of_the_compose_file_hold_a_ledger(patient_servers):
    """Its role makes the tables and sends; Airflow has a database of its own."""
    secrets = made_secrets()
    with running_node() as node:
        settings = {name: filled(value, secrets) for name, value in environment("postgres").items()}
        path = f"{_binaries()}:{os.environ['PATH']}"
        subprocess.run(
            ["sh", DEPLOY / "create-databases.sh"],
            env={**settings, "PGHOST": str(node.folder), "PATH": path},
            check=True,
            capture_output=True,
            timeout=LONGEST,
        )
        with closing(open_postgres(node.url("sms").set(username="sms"))) as store:
            ledger = CampaignLedger(store, "first", claimant())
            chunk = request_of([person.key for person in people(3)], [person.destination for person in people(3)])
            (claimed,) = ledger.commit(chunks=[chunk], claim_seconds=60.0)
            ledger.commit(outcomes=[Outcome(claimed.request_id, ACCEPTED)])
        rows = node.ask("SELECT datname FROM pg_database WHERE pg_get_userbyid(datdba) IN ('airflow', 'sms')")
        assert sorted(rows) == [("airflow",), ("sms",)]


def test_what_the_dockerfile_copies_is_the_package(tmp_path):
    """The image's package is built of these files alone, and the context holds them."""
    sources = re.findall(r"^COPY --chown=\S+ (.*) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    names = [name for line in sources for name in line.split()]
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert ignored[0] == "*"
    assert {f"!{name}" for name in names} == {line for line in ignored if line.startswith("!")}
    for name in names:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path)
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", tmp_path]
    subprocess.run(command, check=True, capture_output=True, timeout=LONGEST)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert "airflow_provider_sms/get_provider_info.py" in packed.namelist()
