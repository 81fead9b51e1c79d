from __future__ import annotations

import pytest
from support.faults.tries import STORES
from support.orders.cases import SMALL
from support.orders.drawn import draw_orders
from support.orders.explore import explore
from support.orders.ledgers import opened

from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT

BY_BALANCE = {f"the balance closed a request as {state}" for state in (ACCEPTED, NOT_SENT)}


@pytest.mark.parametrize("name", SMALL)
def test_in_every_order_the_promise_holds(name):
    """Nobody is texted twice or lost, each record is true, and the counts add up; a balance decides either way."""
    case = SMALL[name]
    with opened("sqlite") as ledger:
        explored = explore(case, ledger)
    assert (explored.broken, explored.orders > 10) == ([], True)
    assert case.on_unknown != "reconcile" or explored.rare >= BY_BALANCE


@pytest.mark.parametrize("store", STORES)
def test_in_drawn_orders_of_more_attempts_the_promise_holds(store):
    """The same, of up to three attempts with everything that may happen at once."""
    with opened(store) as ledger:
        assert draw_orders(ledger, 50)
