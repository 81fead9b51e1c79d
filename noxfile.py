"""The tests on every supported version of Airflow, on the package as it is built.

``nox -s "airflow(3.1.8)"`` runs one version, ``make matrix`` all of them. Arguments after ``--`` go to pytest. Python
is the one that runs nox; ``--force-python 3.12`` takes another. Environments are kept between runs.
"""

from __future__ import annotations

from pathlib import Path

import nox

NEWEST = "3.3.2"
PRE_RELEASE = "3.4.0b2"
VERSIONS = ("3.1.8", "3.2.2", NEWEST, PRE_RELEASE)
ROOT = Path(__file__).parent

NOT_ON_EACH = (
    # They measure: what is slow on an old version is slow because of that version.
    "tests/benchmarks",
    # The files are for the newest Airflow.
    "tests/docs/test_deploy_page.py",
    # They build the package or open a browser, which is the same for all.
    "tests/test_browser.py",
    "tests/test_packaging.py",
    # They break the package's own code and see whether the tests notice.
    "tests/faults/test_mutants.py",
)

nox.options.reuse_venv = "yes"
nox.options.default_venv_backend = "uv"


@nox.session
@nox.parametrize("version", [nox.param(version, id=version) for version in VERSIONS])
def airflow(session: nox.Session, version: str) -> None:
    """Run the tests on an Airflow version, with the other packages that are pinned for it."""
    # Given as a folder, the package is built into a wheel; without the option, what was built before would be taken.
    build = "--reinstall-package=airflow-provider-sms"
    session.install(build, "--constraint", str(pins(version)), f"apache-airflow=={version}", ".[test]")
    options = [f"--ignore={path}" for path in NOT_ON_EACH]
    if version != NEWEST:
        # An older Airflow and the packages of its time warn about each other; what our modules cause stays an error.
        options.append("--override-ini=filterwarnings=ignore\nerror:::airflow_provider_sms")
    # Nothing may find the package in the current folder.
    session.run("pytest", *options, *session.posargs, env={"PYTHONSAFEPATH": "1"})


def pins(version: str) -> Path:
    """Return the file that pins the versions of everything else."""
    return ROOT / ("constraints.txt" if version == NEWEST else f"constraints/airflow-{version}.txt")
