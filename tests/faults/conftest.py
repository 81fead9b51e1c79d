from __future__ import annotations

import pytest
from support.faults.tries import Ledgers


@pytest.fixture(params=["sqlite", "postgresql"])
def ledgers(request, tmp_path):
    """One ledger of this test's own, in each kind of database."""
    if request.param == "sqlite":
        return Ledgers.in_file(tmp_path / "ledger.db")
    return Ledgers(request.getfixturevalue("postgres_ledger_url"))
