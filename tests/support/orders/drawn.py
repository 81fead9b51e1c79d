"""Orders of larger cases, drawn by Hypothesis, which shrinks one that is wrong to the shortest history."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st

from support.orders.explore import judge
from support.orders.world import HOURS, OWN_HOURS, Case, World, patched

ATTEMPTS = (
    ((1, "a"),),
    ((1, "a"), (1, "a")),
    ((1, "a"), (2, "a")),
    ((1, "a"), (1, "b")),
    ((1, "a"), (2, "a"), (1, "b")),
)
SELDOM = (
    *(("busy", 2), ("poor", 1), ("reads", 1), ("unread", 2), ("spends", 1), ("strange", 1), ("partly", 1)),
    *(("window", HOURS), ("window", OWN_HOURS), ("rate", 0.5)),
)
"""What may happen besides, and how often, in some cases."""
SOMETIMES = (
    "a commit is called failed",
    "a commit is the last one",
    "a commit is undone",
    "a balance was not told",
    "a pause held a send back",
    "a purge forgot the campaign",
    "a request was taken in part",
    "a response came when its message was free again, and free",
    "a response came when its message was free again, and claimed",
    "a response came when its request was accepted",
    "a send ended with LedgerLostError",
    "a send ended with OutageError",
    "somebody waited when a process had died",
    "somebody was texted twice, and it is said",
    "the balance closed a request as accepted",
    "the balance closed a request as not_sent",
    "the credit ran out",
    "the hours ended",
)
"""What must have happened at least once in some thousand orders."""


@st.composite
def cases(draw):
    """Draw a case; what undoes a commit is alone, since others may text those whom the ledger has forgotten."""
    few, once = st.integers(0, 2), st.integers(0, 1)
    most = {"messages": draw(st.integers(1, 4)), "chunk_size": draw(st.integers(1, 2))}
    most |= {"concurrency": draw(st.integers(1, 3)), "lost": draw(few), "refused": draw(few)}
    most |= {"stops": draw(once), "jumps": draw(few), "pauses": draw(once)}
    # What ends a send early lets less happen after it.
    most |= dict(draw(st.lists(st.sampled_from(SELDOM), max_size=2)))
    if draw(st.integers(0, 9)) == 9:
        return Case(((1, "a"),), undone=1, **most)
    on_unknown = draw(st.sampled_from(("fail", "reconcile", "resend")))
    if on_unknown == "reconcile":
        most |= {"late": draw(few)}
    else:  # a balance decides there; so nobody may have decided wrongly
        most |= {"decisions": draw(few)}
    most |= {"commits": draw(few), "crashes": draw(few), "doubled": draw(once), "purges": draw(once)}
    return Case(draw(st.sampled_from(ATTEMPTS)), on_unknown=on_unknown, **most)


def draw_orders(ledger, count, number=None):
    """Play so many orders, drawn by a seed if any, and return in how many that happened which seldom does.

    :raises AssertionError: something was wrong; the shortest history of it is in the notes.
    """
    rare = Counter()

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases(), data=st.data())
    def play(case, data):
        world = World(case, ledger, lambda most, _: data.draw(st.integers(0, most - 1), label="") if most > 1 else 0)
        with closing(world.schedule), patched(world):
            world.play()
            wrong = judge(world)
        rare.update(world.rare)
        note("\n".join(world.schedule.log))
        assert not wrong, "; ".join(wrong)

    (play if number is None else seed(number)(play))()
    return rare
