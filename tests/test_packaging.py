from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from airflow_provider_sms import __version__

ROOT = Path(__file__).parents[1]
INFO = f"airflow_provider_sms-{__version__}.dist-info"
TOP = f"airflow_provider_sms-{__version__}"


def build(*what, source, into):
    """Build distributions of a source tree, by what this environment has installed."""
    command = [sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", str(into), str(source)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Where the source distribution is, and the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    build("--sdist", "--wheel", source=ROOT, into=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    """The files in the wheel, by name."""
    return contents(built)


def contents(folder):
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_has_the_package_and_nothing_else(wheel):
    """Each module and each file of the pages, as it is here, the mark of types and the licence; no other package."""
    package = ROOT / "airflow_provider_sms"
    files = [path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    expected = {str(path.relative_to(ROOT)): path.read_bytes() for path in files}
    assert {name: content for name, content in wheel.items() if not name.startswith(f"{INFO}/")} == expected
    assert {"py.typed", "plugins/templates/campaign.html", "sandbox/static/page.js"} <= {
        str(path.relative_to(package)) for path in files
    }
    assert wheel[f"{INFO}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_the_source_distribution_makes_the_same_wheel(built, wheel, tmp_path):
    """Whoever builds from source gets what is given out built."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path)  # made by this test; Python 3.11.2 has no filter
    build("--wheel", source=tmp_path / TOP, into=tmp_path / "again")
    assert wheel == contents(tmp_path / "again")


def test_the_source_distribution_has_what_ci_runs(built):
    """Tests, documentation, examples and their commands are in it."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.removeprefix(f"{TOP}/") for name in archive.getnames()}
    wanted = {"tests/conftest.py", "docs/conf.py", "dags/example_sms_campaign.py", ".ci/test", "Makefile", "LICENSE"}
    assert wanted | {"README.md", "CHANGELOG.md", "RELEASING.md", "CONTRIBUTING.md", "constraints.txt"} <= names
    assert not any(name.startswith((".venv", "build/", "docs/_build")) for name in names)
