"""The version of the package before this one, for machines that an upgrade has not reached."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import airflow_provider_sms

PACKAGE = "airflow_provider_sms"
CHOSEN = "BEFORE"
"""Environment variable: a revision of the repository; unset, the one before the last change of the package."""


def before(folder):
    """Return the environment variables with which a worker runs the version before.

    :param folder: for its files.
    """
    repository = Path(airflow_provider_sms.__file__).parents[1]
    revision = os.environ.get(CHOSEN) or f"{_git(repository, 'log', '-1', '--format=%H', '--', PACKAGE).strip()}~1"
    place = folder / "version-before"
    place.mkdir()
    archive = place / "package.tar"
    _git(repository, "archive", "--output", str(archive), revision, PACKAGE)
    with tarfile.open(archive) as files:
        files.extractall(place, filter="data")
    return {"PYTHONPATH": str(place)}


def _git(repository, *arguments):
    return subprocess.run(["git", "-C", str(repository), *arguments], check=True, capture_output=True, text=True).stdout
