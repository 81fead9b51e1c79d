from __future__ import annotations

from pathlib import Path

import pytest
from support.faults.tries import Ledgers


def pytest_collection_modifyitems(items):
    """Mark all tests of this folder as slow."""
    for each in items:
        if each.path.parent == Path(__file__).parent:
            each.add_marker(pytest.mark.slow)


@pytest.fixture(params=["sqlite", "postgresql"])
def ledgers(request, tmp_path):
    """One ledger of this test's own, in each kind of database."""
    if request.param == "sqlite":
        return Ledgers.in_file(tmp_path / "ledger.db")
    return Ledgers(request.getfixturevalue("postgres_ledger_url"))
