from __future__ import annotations

import subprocess
import sys
import threading
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact, getcontext, localcontext

import pytest

from airflow_provider_sms.decimal_context import own_decimals


@pytest.mark.parametrize(
    "others", [Context(prec=3), Context(rounding=ROUND_HALF_UP), Context(traps=[Inexact]), Context(Emax=5)], ids=repr
)
def test_decimals_are_those_of_this_package(others):
    """Whatever other code has set for its decimals, a block computes with Python's own defaults, and leaves theirs."""
    with localcontext(others):
        before = getcontext()
        with own_decimals():
            assert Decimal(1) / 3 == Decimal("0." + "3" * 28)
            assert format(Decimal("2.665"), ".2f") == "2.66"
        assert getcontext() is before
        assert (before.prec, before.rounding) == (others.prec, others.rounding)


def test_a_function_may_compute_with_them():
    """It is a decorator, too, for functions that several threads call at once."""

    @own_decimals()
    def third():
        return Decimal(1) / 3

    found = []
    with localcontext(Context(prec=2)):
        threads = [threading.Thread(target=lambda: found.append(third())) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert {third(), *found} == {Decimal("0." + "3" * 28)}


def test_what_a_dags_file_has_made_the_default_is_not_taken_over():
    """Python copies what a context leaves out from a default that anybody can change before this package is loaded."""
    script = (
        "import decimal; decimal.DefaultContext.traps[decimal.Inexact] = True; decimal.DefaultContext.Emax = 3\n"
        "from airflow_provider_sms.decimal_context import own_decimals\n"
        "with own_decimals(): print(decimal.Decimal(100_000) / 3)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "33333.33333333333333333333333\n"
