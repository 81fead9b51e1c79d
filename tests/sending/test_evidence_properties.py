from __future__ import annotations

import pytest
from support.accounts import Account, Setting, main

APART = {"tasks": ((20, 1),), "silent": 0.0}


def test_no_verdict_is_wrong():
    """Within the assumptions, whatever is lost, whenever it is charged for, and whoever dies."""
    found = [Account(Setting.at_random(seed), seed).found() for seed in range(150)]
    assert sum(wrong for _, _, wrong in found) == 0
    assert 0 < sum(undecided for _, undecided, _ in found) < sum(lost for lost, _, _ in found) / 4


@pytest.mark.parametrize("prices", ["one", "sizes", "exact", "bounds"])
def test_what_is_lost_apart_is_decided(prices):
    """One request at a time, on an account that nobody else uses."""
    for seed in range(10):
        lost, undecided, wrong = Account(Setting(**APART, prices=prices, left_out=0.4), seed).found()
        assert (lost > 0, undecided, wrong) == (True, 0, 0)


@pytest.mark.parametrize("spent", [(30, 300), (30, -300), (10, 1)], ids=["much", "top-ups", "little"])
def test_what_others_spend_makes_no_verdict_wrong(spent):
    """Sums that no request costs, larger or smaller, leave it undecided."""
    found = [Account(Setting(others=(spent,)), seed).found() for seed in range(20)]
    assert sum(wrong for _, _, wrong in found) == 0


def test_a_sum_like_that_of_a_request_deceives():
    """The assumption is needed, and the simulator notices."""
    found = [Account(Setting(tasks=((10, 1),), taken=0.0, others=((60, 100),)), seed).found() for seed in range(20)]
    assert sum(wrong for _, _, wrong in found) > 0


def test_the_command_says_what_it_found(capsys):
    """How many were lost, undecided and wrong; the status is 0 where none was wrong."""
    assert main(3) == 0
    assert "3 accounts: " in capsys.readouterr().out
