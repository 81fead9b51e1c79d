from __future__ import annotations

import pytest
from support.whole import run_all

SHARING = {"test_privacy.py": "test_whole.py"}
"""File → the file with which it shares a fixture that takes a minute or more."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run the files that share a fixture in one process, and so make the fixture once."""
    from xdist.scheduler import LoadFileScheduling

    class Sharing(LoadFileScheduling):
        def _split_scope(self, nodeid):
            folder, _, file = super()._split_scope(nodeid).rpartition("/")
            return f"{folder}/{SHARING.get(file, file)}"

    return Sharing(config, log)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Give what was seen of a real Airflow that has run everything once."""
    return run_all(tmp_path_factory.mktemp("whole"))
