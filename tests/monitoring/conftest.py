from __future__ import annotations

import pytest


@pytest.fixture
def ledger(store, open_reader):
    return open_reader()
