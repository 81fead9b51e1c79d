"""Orders of larger cases, drawn by Hypothesis, which shrinks one that is wrong to the shortest history."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from support.orders.explore import judge
from support.orders.world import Case, World, patched

ATTEMPTS = (
    ((1, "a"),),
    ((1, "a"), (1, "a")),
    ((1, "a"), (2, "a")),
    ((1, "a"), (1, "b")),
    ((1, "a"), (2, "a"), (1, "b")),
)
SOMETIMES = (
    "a commit is called failed",
    "a commit is undone",
    "a pause held a send back",
    "a purge forgot the campaign",
    "a response came when its message was free again, and free",
    "a response came when its message was free again, and claimed",
    "a response came when its request was accepted",
    "a send ended with LedgerLostError",
    "a send ended with OutageError",
    "somebody was texted twice, and it is said",
    "the balance closed a request as accepted",
    "the balance closed a request as not_sent",
)
"""What must have happened at least once in some thousand orders."""


@st.composite
def cases(draw):
    """Draw a case; what undoes a commit is alone, since others may text those whom the ledger has forgotten."""
    few = st.integers(0, 2)
    most = {"messages": draw(st.integers(1, 4)), "chunk_size": draw(st.integers(1, 2))}
    most |= {"concurrency": draw(st.integers(1, 3)), "lost": draw(few), "refused": draw(few)}
    most |= {"stops": draw(st.integers(0, 1)), "jumps": draw(few), "pauses": draw(st.integers(0, 1))}
    if draw(st.integers(0, 9)) == 9:
        return Case(((1, "a"),), undone=1, **most)
    on_unknown = draw(st.sampled_from(("fail", "reconcile", "resend")))
    late = draw(few) if on_unknown == "reconcile" else 0
    # A balance decides; so nobody may have decided wrongly.
    decisions = 0 if on_unknown == "reconcile" else draw(few)
    most |= {"commits": draw(few), "crashes": draw(few), "doubled": draw(st.integers(0, 1)), "late": late}
    most |= {"decisions": decisions, "purges": draw(st.integers(0, 1))}
    return Case(draw(st.sampled_from(ATTEMPTS)), on_unknown=on_unknown, **most)


def draw_orders(ledger, count, **options):
    """Play so many orders, and return in how many that happened which seldom does.

    :param options: of Hypothesis' settings.
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
        **options,
    )
    @given(case=cases(), data=st.data())
    def play(case, data):
        def choose(options, _):
            return data.draw(st.integers(0, options - 1), label="")

        world = World(case, ledger, choose)
        with closing(world), patched(world):
            world.play()
            wrong = judge(world)
        rare.update(world.rare)
        note("\n".join(world.schedule.log))
        assert not wrong, "; ".join(wrong)

    play()
    return rare
