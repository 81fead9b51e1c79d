"""The precision and the rounding of this package's decimals, whatever a DAG's file has set for its own.

Python keeps both in a context of the thread, and a DAG's file may set them for its own sums: ``getcontext().prec = 6``,
or ``ROUND_HALF_UP``. That holds in the task's own thread, and not in the one that sends. The two would write different
texts, and sums of credits would lose digits, among them those that tell whether a lost request was charged for.

A module of its own, though a short one, because texts, prices and evidence share the rule, and know nothing of each
other.
"""

from __future__ import annotations

from contextlib import contextmanager
from decimal import ROUND_HALF_EVEN, Context, DivisionByZero, InvalidOperation, Overflow, localcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Python's own defaults, each by name: what is left out would be taken from a default that a DAG's file can set, too.
CONTEXT = Context(
    prec=28,
    rounding=ROUND_HALF_EVEN,
    Emin=-999_999,
    Emax=999_999,
    capitals=1,
    clamp=0,
    flags=[],
    traps=[DivisionByZero, InvalidOperation, Overflow],
)


@contextmanager
def own_decimals() -> Iterator[None]:
    """Compute with 28 digits, and round ties to the even digit, in a block or in a function that this decorates."""
    with localcontext(CONTEXT):
        yield
