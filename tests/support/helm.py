"""Render the Helm values of ``docs/deploy`` with Airflow's own chart, and see that each of them arrives.

Run in the root of the repository, with ``tests`` on the path::

    helm pull apache-airflow/airflow --version 1.22.0
    python -m support.helm airflow-1.22.0.tgz

It needs Helm and the chart, so no test runs it. Helm itself checks the values against the chart's schema.
"""

from __future__ import annotations

import argparse
import configparser
import subprocess
import sys
from typing import Any

import yaml

from support.pages import ROOT

DEPLOY = ROOT / "docs" / "deploy"
VALUES = yaml.safe_load((DEPLOY / "helm-values.yaml").read_text())
KUBERNETES = yaml.safe_load((DEPLOY / "helm-values-kubernetes.yaml").read_text())
SECRETS = {
    "AIRFLOW__CORE__FERNET_KEY": (VALUES["fernetKeySecretName"], "fernet-key"),
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": (VALUES["data"]["metadataSecretName"], "connection"),
    "AIRFLOW__API__SECRET_KEY": (VALUES["apiSecretKeySecretName"], "api-secret-key"),
    "AIRFLOW__API_AUTH__JWT_SECRET": (VALUES["jwtSecretName"], "jwt-secret"),
}


def rendered(helm: str, chart: str, *names: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the manifests by kind and name."""
    options = [option for name in names for option in ("--values", str(DEPLOY / name))]
    command = [helm, "template", "airflow", chart, "--namespace", "airflow", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    manifests = filter(None, yaml.safe_load_all(done.stdout))
    return {(each["kind"], each["metadata"]["name"]): each for each in manifests}


def check_pod(pod: dict[str, Any], worker: dict[str, Any]) -> None:
    """A worker's pod has the image, the time to stop, the resources, the connections and the recovery folder."""
    (container,) = (each for each in pod["containers"] if each["name"] in {"worker", "base"})
    assert container["image"] == f"{VALUES['defaultAirflowRepository']}:{VALUES['defaultAirflowTag']}"
    assert pod["terminationGracePeriodSeconds"] == worker["terminationGracePeriodSeconds"]
    assert container["resources"] == worker["resources"]
    assert container["envFrom"] == yaml.safe_load(VALUES["extraEnvFrom"])
    (mount,) = worker["extraVolumeMounts"]
    assert mount in container["volumeMounts"]
    # Without it, the user of the image could not write into the folder.
    assert pod["securityContext"]["fsGroup"] == 0


def check_all(manifests: dict[tuple[str, str], dict[str, Any]], executor: str) -> None:
    """Airflow has the settings, and each of its containers the connections and secrets."""
    config = configparser.RawConfigParser()
    config.read_string(manifests["ConfigMap", "airflow-config"]["data"]["airflow.cfg"])
    assert config["core"]["executor"] == executor
    for section, options in VALUES["config"].items():
        for option, value in options.items():
            assert config[section][option] == str(value), (section, option)
    given: set[str] = set()
    for (kind, name), manifest in manifests.items():
        if kind not in {"Deployment", "StatefulSet", "Job"}:
            continue
        pod = manifest["spec"]["template"]["spec"]
        for container in pod["containers"] + pod.get("initContainers", []):
            if not any(each["name"] == "AIRFLOW__CORE__FERNET_KEY" for each in container.get("env", ())):
                continue  # it runs no Airflow
            assert container["envFrom"] == yaml.safe_load(VALUES["extraEnvFrom"]), name
            for variable in container["env"]:
                if variable["name"] in SECRETS:
                    secret, key = SECRETS[variable["name"]]
                    assert variable["valueFrom"]["secretKeyRef"] == {"name": secret, "key": key}, name
                    given.add(variable["name"])
    assert given == SECRETS.keys()
    server = manifests["Deployment", "airflow-api-server"]["spec"]
    assert server["replicas"] == VALUES["apiServer"]["replicas"]
    # `kubectl exec` of the page runs in the first one.
    assert server["template"]["spec"]["containers"][0]["name"] == "api-server"
    assert not {"airflow-postgresql", "airflow-create-user"} & {name for _, name in manifests}


def check_celery(manifests: dict[tuple[str, str], dict[str, Any]]) -> None:
    """The workers are a set with volumes of their own."""
    check_all(manifests, "CeleryExecutor")
    worker, values = manifests["StatefulSet", "airflow-worker"]["spec"], VALUES["workers"]["celery"]
    assert worker["replicas"] == values["replicas"]
    check_pod(worker["template"]["spec"], values)
    claims = {each["metadata"]["name"]: each["spec"] for each in worker["volumeClaimTemplates"]}
    (recovery,) = values["volumeClaimTemplates"]
    assert claims["sms-recovery"] == recovery["spec"]
    assert claims["logs"]["resources"]["requests"]["storage"] == values["persistence"]["size"]


def check_kubernetes(manifests: dict[tuple[str, str], dict[str, Any]]) -> None:
    """There are no workers and no queue, and the pod of a task has the volume."""
    check_all(manifests, "KubernetesExecutor")
    assert not {("StatefulSet", "airflow-worker"), ("StatefulSet", "airflow-redis")} & manifests.keys()
    pod = yaml.safe_load(manifests["ConfigMap", "airflow-config"]["data"]["pod_template_file.yaml"])["spec"]
    values = KUBERNETES["workers"]["kubernetes"]
    check_pod(pod, values)
    (volume,) = values["extraVolumes"]
    assert volume in pod["volumes"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chart", help="the chart: a folder, or the file of a release")
    parser.add_argument("--helm", default="helm", help="the command; %(default)s by default")
    options = parser.parse_args()
    names = ("helm-values.yaml", "helm-values-kubernetes.yaml")
    check_celery(rendered(options.helm, options.chart, names[0]))
    check_kubernetes(rendered(options.helm, options.chart, *names))
    sys.stdout.write("Each value arrives, with the CeleryExecutor and with the KubernetesExecutor.\n")


if __name__ == "__main__":
    main()
