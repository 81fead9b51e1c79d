from __future__ import annotations

from types import SimpleNamespace

import pytest
from support.engine import by_request
from support.sending import people

from airflow_provider_sms.exceptions import OutageError
from airflow_provider_sms.sending.attempt_loop import MAX_PASSES, send


class Passes:
    """A sender that makes as many requests in each pass as it is told, and what is settled after it.

    :param ends: how many requests each pass makes; None for all.
    :param frees: whether messages became free after each pass; an error is raised.
    """

    def __init__(self, ends, frees):
        self.ends, self.frees, self.passes, self.error = list(ends), list(frees), [], None
        self.reads = 0

    @property
    def goes_on(self):
        return self.error is None

    def run(self, chunks):
        most, made = self.ends.pop(0), []
        while chunks.any and (most is None or len(made) < most):
            made.append(len(chunks.take()))
        self.passes.append(made)
        return not chunks.any

    def settle(self):
        freed = self.frees.pop(0)
        if isinstance(freed, Exception):
            raise freed
        return freed

    def fail(self, error):
        self.error = error

    def free_messages(self):
        self.reads += 1
        return by_request(people(3))


@pytest.mark.parametrize(
    ("ends", "frees", "passes", "reads"),
    [
        pytest.param([None], [False], [[10, 10, 5]], 0, id="all in one pass"),
        pytest.param([1, None], [False, False], [[10], [10, 5]], 0, id="a pass goes on where the last one stopped"),
        pytest.param([None, None], [True, False], [[10, 10, 5], [3]], 1, id="what became free is sent"),
        pytest.param([1, None, None], [True, False, False], [[10], [10, 5], [3]], 1, id="after the rest of the table"),
        pytest.param([1], [OutageError("away")], [[10]], 0, id="what cannot be settled ends the send"),
        pytest.param([1], [OSError("full")], [[10]], 0, id="whatever it is"),
        pytest.param(
            [None] * MAX_PASSES,
            [True] * MAX_PASSES,
            [[10, 10, 5], *[[3]] * (MAX_PASSES - 1)],
            MAX_PASSES - 1,
            id="what others give back again and again is left to the next attempt",
        ),
    ],
)
def test_passes_follow_each_other_until_nothing_is_left(ends, frees, passes, reads):
    """Between two passes what is open is settled; the table is read again only where messages became free."""
    sender = Passes(ends, frees)
    send(sender, SimpleNamespace(run=Passes.settle), by_request(people(25), 10), sender.free_messages)
    assert (sender.passes, sender.reads, sender.frees) == (passes, reads, [])
    assert (sender.error is None) is not any(isinstance(each, Exception) for each in frees)
