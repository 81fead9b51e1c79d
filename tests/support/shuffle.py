"""Who runs which tests; ``--shuffle SEED``, files in random order, and their tests, too; and ``--beside-a-load``."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import groupby

import pytest
from xdist.scheduler import LoadFileScheduling


class _ByFile(LoadFileScheduling):
    """Gives whole files to processes, since one may have an Airflow for all its tests; of the faults, single tests."""

    def _split_scope(self, nodeid):
        return nodeid if "/faults/" in nodeid else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return _ByFile(config, log)


def pytest_addoption(parser):
    parser.addoption("--shuffle", metavar="SEED", type=int, help="run in a random order, which the seed determines")
    parser.addoption("--beside-a-load", action="store_true", help="run while other processes keep every core busy")


def pytest_report_header(config):
    seed = config.getoption("shuffle")
    return None if seed is None else f"in random order: --shuffle {seed}"


def pytest_configure(config):
    """Keep every core busy; ``support.leftovers`` ends the load also where this process is killed."""
    if config.getoption("beside_a_load") and not hasattr(config, "workerinput"):
        for _ in range(os.cpu_count() or 1):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            config.add_cleanup(lambda busy=busy: (busy.kill(), busy.wait()))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep each file together."""
    seed = config.getoption("shuffle")
    if seed is None:
        return
    order = random.Random(seed)
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    order.shuffle(files)
    for tests in files:
        order.shuffle(tests)
    items[:] = [test for tests in files for test in tests]
