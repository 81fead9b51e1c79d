"""pytest's option ``--shuffle SEED``: files in random order, and the tests of each file in random order."""

from __future__ import annotations

import random
from itertools import groupby

import pytest


def pytest_addoption(parser):
    parser.addoption("--shuffle", metavar="SEED", type=int, help="run in a random order, which the seed determines")


def pytest_report_header(config):
    seed = config.getoption("shuffle")
    return None if seed is None else f"in random order: --shuffle {seed}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep each file together, since a fixture of a file may be a whole Airflow."""
    seed = config.getoption("shuffle")
    if seed is None:
        return
    order = random.Random(seed)
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    order.shuffle(files)
    for tests in files:
        order.shuffle(tests)
    items[:] = [test for tests in files for test in tests]
