from __future__ import annotations

import pytest
from support.orders.cases import SMALL
from support.orders.explore import explore


@pytest.mark.parametrize("name", SMALL)
def test_in_every_order_the_promise_holds(name, tmp_path, monkeypatch):
    """Nobody is texted twice or lost, each record is true, and the counts of every attempt add up."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    explored = explore(SMALL[name])
    assert (explored.broken, explored.orders > 20) == ([], True)
