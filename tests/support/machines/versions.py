"""An older version of the package, for machines that an upgrade has not reached."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from contextlib import suppress
from pathlib import Path

from airflow_provider_sms.ledger.schema import SCHEMA_VERSION

PACKAGE = "airflow_provider_sms"
PLACE = "version-before"
CHOSEN = "BEFORE"
"""Environment variable: a revision of the repository; unset, :data:`FIRST`."""
FIRST = "70803dcdf206065d9b0803f7bbbaf0503d55a9b5"
"""The first revision whose ledger has today's schema: an older package refuses the ledger."""


def before(folder):
    """Return the environment variables with which a worker runs the older version.

    :param folder: for its files.
    :raises RuntimeError: the history lacks the revision, or its ledger has another schema.
    """
    revision = os.environ.get(CHOSEN) or FIRST
    # Otherwise the worker would refuse the ledger and send nothing, or upgrade it: another scenario.
    if (schema := schema_of(revision)) != SCHEMA_VERSION:
        raise RuntimeError(
            f"the ledger of {revision} has schema {schema}, not {SCHEMA_VERSION}: set {CHOSEN} to another"
        )
    place = folder / PLACE
    place.mkdir()
    archive = place / "package.tar"
    _git("archive", "--output", str(archive), revision, PACKAGE)
    with tarfile.open(archive) as files:
        files.extractall(place, filter="data")
    return {"PYTHONPATH": str(place)}


def require_used(folder):
    """Check that a process has sent with the older version: Python compiles a module when it is first imported.

    :param folder: that of :func:`before`.
    :raises RuntimeError: none has.
    """
    if not list((folder / PLACE / PACKAGE / "sending").glob("__pycache__/sender.*.pyc")):
        raise RuntimeError("no task sent with the version before")


def schema_of(revision):
    """Return the version of the ledger's schema in a revision."""
    text = _git("show", f"{revision}:{PACKAGE}/ledger/schema.py")
    return int(re.search(r"^SCHEMA_VERSION = (\d+)$", text, re.MULTILINE)[1])


def has_history():
    """Return whether the revision is here; a copy of the files, or of the last commits, lacks it."""
    with suppress(RuntimeError, OSError):
        return _git("cat-file", "-t", FIRST).strip() == "commit"
    return False


def _git(*arguments):
    # Of this file: the package may be an installed one, outside of the repository.
    repository = Path(__file__).parents[3]
    ran = subprocess.run(["git", "-C", str(repository), *arguments], check=False, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"git {' '.join(arguments)}: {ran.stderr.strip()}")
    return ran.stdout
