from __future__ import annotations

import pytest
from sqlalchemy import text


@pytest.fixture
def rows(store):
    """Read this test's ledger by a query."""

    def rows(query):
        with store.read() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    return rows
