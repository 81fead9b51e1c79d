from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import insert
from support.told import tell

from airflow_provider_sms.ledger.schema import balance
from airflow_provider_sms.monitoring.balances import DAY, BalanceReading, account_balances, downsample, spent_per_day


def readings(*pairs):
    return [BalanceReading(at * DAY, None if amount is None else Decimal(amount)) for at, amount in pairs]


def saw(store, conn_id, *pairs):
    with store.write(1) as connection:
        for days_ago, amount in pairs:
            at = store.clock() - days_ago * DAY
            connection.execute(insert(balance).values(conn_id=conn_id, observed_at=at, amount=amount))


@pytest.mark.parametrize(
    ("balances", "spent"),
    [
        (readings((0, 100), (1, 90), (2, 80)), 10),
        (readings((0, 100), (1, 90), (1.5, 500), (2, 490)), 10),
        (readings((1.9, 100), (2, 50)), 50),
        (readings((0, 100), (2, 100)), 0),
        (readings((0, 1000), (1, 900), (1.0005, 950), (1.001, 850)), 75),
        (readings((2, 100)), None),
        (readings((0, None), (2, None)), None),
        (readings((-20, 900), (0, 100), (1, 90), (2, 80)), 10),
    ],
)
def test_what_is_spent_a_day_is_what_the_balance_fell_by(balances, spent):
    """Credits bought in between are not set off, less than a day counts as one, and only the last days count."""
    assert spent_per_day(balances, 2 * DAY) == (None if spent is None else Decimal(spent))


def test_a_balance_is_shown_with_the_days_that_it_lasts(store, ledger):
    """The last balance at the present rate; a post-paid account has neither."""
    saw(store, "b", (2, "1000.5"), (1, "900.5"), (0.001, "800.5"))
    saw(store, "a", (1, None))
    postpaid, prepaid = account_balances(ledger, may_see=lambda _: True, sees_everything=True)
    assert (postpaid.conn_id, postpaid.days_left, postpaid.spent_per_day) == ("a", None, None)
    assert prepaid.readings[-1].amount == Decimal("800.5")
    assert float(prepaid.spent_per_day) == pytest.approx(100, rel=1e-3)
    assert prepaid.days_left == pytest.approx(8.005, rel=1e-3)


def test_a_connection_that_only_hidden_dags_use_is_left_out(store, ledger):
    """A reader sees no spending of hidden DAGs, and no connection that no visible DAG is known to use."""
    for conn_id in ("theirs", "shared", "watched"):
        saw(store, conn_id, (1, "5"))
    tell(store, "x", dag_id="hidden", note={"conn_id": "theirs"})
    tell(store, "y", dag_id="hidden", note={"conn_id": "shared"})
    tell(store, "z", dag_id="seen", note={"conn_id": "shared"})

    def shown(*seen, everything=False):
        found = account_balances(ledger, may_see=lambda dag_id: dag_id in seen, sees_everything=everything)
        return [each.conn_id for each in found]

    assert shown("seen") == ["shared"]
    assert shown("seen", "hidden") == ["shared", "theirs"]
    assert shown() == [], "no DAG is not every DAG"
    assert shown(everything=True) == ["shared", "theirs", "watched"]


def test_many_balances_are_downsampled_to_the_last_of_each_interval():
    """A chart never has more points than it has room for, and keeps the newest."""
    many = readings(*((number / 100, number) for number in range(100)))
    kept = downsample(many, 0.0, DAY, 10)
    assert (len(kept), kept[-1]) == (10, many[-1])
