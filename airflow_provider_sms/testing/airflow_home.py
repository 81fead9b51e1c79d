"""The Airflow of a test run: a home with a metadata database, in a temporary folder.

Airflow reads its environment when it is first imported. So the home is made when pytest starts, and the database, which
takes seconds, when the first DAG runs.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import tempfile
from pathlib import Path

import pytest

OF_ANOTHER_AIRFLOW = (
    "AIRFLOW_CONFIG",
    "AIRFLOW__CORE__EXECUTOR",
    "AIRFLOW__CORE__SQL_ALCHEMY_CONN",
    "AIRFLOW__DATABASE__",
    "AIRFLOW__SECRETS__",
    "AIRFLOW__SMS__LEDGER_CONN_ID",
    "AIRFLOW__WORKERS__SECRETS_BACKEND",
)
"""Prefixes of the environment variables that lead to a real database, ledger, executor or secrets backend.

Airflow looks for a connection in the secrets backend first, so the ``sms_default`` there would text people.
"""


class AirflowHome:
    """The Airflow in which the tests' DAGs run.

    :param is_temporary: whether to give Airflow a home in a temporary folder. Otherwise it keeps that of the
        environment, whose metadata database must exist.
    """

    def __init__(self, *, is_temporary: bool = True) -> None:
        self.path: Path | None = None
        """The temporary folder; None means that Airflow keeps its home."""
        self._environment = pytest.MonkeyPatch()
        self._has_database = False
        if is_temporary:
            self.path = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-"))
            (self.path / "dags").mkdir()  # which dag.test() reads
            for name in [name for name in os.environ if name.startswith(OF_ANOTHER_AIRFLOW)]:
                self._environment.delenv(name)
            settings = {
                "AIRFLOW_HOME": str(self.path),
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                # A test's DAG may have the same name as that of the test before.
                "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0",
                # The one that Airflow makes up is shorter than its signatures need, and Airflow warns of that.
                "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
            }
            for name, value in settings.items():
                self._environment.setenv(name, value)

    def close(self) -> None:
        """Remove the folder, and give the process its environment back."""
        self._environment.undo()
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)

    def require_database(self) -> None:
        """Make the metadata database, unless there is one.

        :raises RuntimeError: the database of this Airflow is not that of the tests, or has no tables; the error says
            what to do.
        """
        if self._has_database:
            return
        from airflow import settings
        from airflow.utils.db import check_migrations, initdb

        if self.path is None:
            try:
                check_migrations(0)  # type: ignore[no-untyped-call]  # Airflow gives it no types
            except TimeoutError:
                raise RuntimeError(
                    "Airflow's metadata database has no tables, or those of another version. Run airflow db migrate "
                    "before pytest, or leave out sms_sandbox_keep_airflow_home to run DAGs in a temporary database"
                ) from None
        elif not str(settings.SQL_ALCHEMY_CONN).startswith(f"sqlite:///{self.path}/"):
            raise RuntimeError(
                "Airflow does not use the temporary metadata database of this test run: it was imported before "
                "airflow_provider_sms.testing was loaded, or AIRFLOW_HOME was changed since. Nothing was run. Load the "
                'plugin first, with addopts = "-p airflow_provider_sms.testing" in the settings of pytest, and set no '
                "AIRFLOW_HOME in conftest.py"
            )
        else:
            root = logging.getLogger()
            level = root.level
            initdb()
            root.setLevel(level)  # migrations raise it to WARNING, and leave it there
        self._has_database = True
