"""A deterministic scheduler: actors are greenlets of one thread, and one of them moves at a time.

An actor says before each step what may come of it, and the schedule chooses both whose step is next and its outcome. So
a run is a list of choices, which can be played again, and all runs together are a tree, of which one goes through every
branch, or draws some.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit, getcurrent, greenlet

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

MOST_STEPS = 400
"""Steps of a run: one that takes more does not end."""


@dataclass(eq=False)
class Actor:
    """Something that takes steps.

    :param process: what dies with it.
    :param is_outside: whether a run may end without a further step of it, which depends on what is shared alone.
    :param is_first: whether its first step commutes with all that others can still do, so that one order is enough.
    :param past: digest of all that it has seen until its last step, with what it did.
    :param seen: what it has seen since; what it does next depends on no more.
    """

    name: str
    process: str
    greenlet: Any
    is_outside: bool = False
    is_first: Callable[[], bool] = lambda: False
    past: bytes = b""
    seen: list[Any] = field(default_factory=list)
    label: str = "begin"
    outcomes: Callable[[], Sequence[str]] = lambda: ("",)
    is_dead: bool = False

    @property
    def is_over(self):
        return self.is_dead or self.greenlet.dead


@dataclass
class Schedule:
    """One run.

    :param choose: returns which of so many options is taken; it may ask for a digest of the state.
    :param shared: returns what the actors share, as a value that identifies it.
    :param observed: returns what each step tells an actor of that process; it tells :func:`see` what it sees besides.
    :param idle: called where no actor can move: makes time pass, and returns whether that may help.
    """

    choose: Callable[[int, Callable[[], bytes]], int]
    shared: Callable[[], Hashable]
    observed: Callable[[str], Hashable]
    idle: Callable[[], bool]
    first: Sequence[str] = ()
    """Steps that are taken first, as the log tells them."""
    actors: list[Actor] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    hub: Any = field(default_factory=getcurrent)
    """The greenlet that chooses."""
    is_ended: bool = False

    def start(self, name, process, work, *, at_once=False, **of):
        """Add an actor, which begins once it is chosen, or at once."""
        # Its parent, to which it hands over, is not whoever starts it.
        actor = Actor(name, process, greenlet(lambda _: work(), self.hub), **of)
        actor.greenlet.actor = actor
        self.actors.append(actor)
        if at_once:
            actor.greenlet.switch("")

    def step(self, label, outcomes=lambda: ("",)):
        """Wait for one's turn, and return the outcome that was chosen.

        :param outcomes: returns what may come of the step now; nothing means that it cannot be taken yet.
        """
        if self.is_ended:
            raise GreenletExit
        current = getcurrent()
        current.actor.label, current.actor.outcomes = label, outcomes
        return str(self.hub.switch())

    def process(self):
        """Return the process of the actor that moves."""
        return str(getcurrent().actor.process)

    def kill(self, process):
        """Let a process take no further step; nothing of it runs any more, not even what cleans up."""
        for actor in self.actors:
            actor.is_dead = actor.is_dead or actor.process == process

    def is_last(self):
        """Return whether the actor that moves is the last one of its process."""
        process = self.process()
        return sum(not actor.is_over and actor.process == process for actor in self.actors) == 1

    def run(self):
        """Take steps until no actor is left.

        :raises AssertionError: there is no end.
        """
        for _ in range(MOST_STEPS):
            options = [*self._options()]
            if all(actor.is_over or actor.is_outside for actor in self.actors):
                options.insert(0, None)  # the end
            elif not options:
                assert self.idle(), "nobody can go on"
                continue
            if len(self.log) < len(self.first):
                options = [each for each in options if each and _told(*each) == self.first[len(self.log)]]
                assert options, f"cannot be taken: {self.first[len(self.log)]}"
            elif first := [each for each in options if each and each[0].label == "begin" and each[0].is_first()]:
                options = first[:1]
            if (option := options[self.choose(len(options), self._state)]) is None:
                return
            actor, outcome = option
            self.log.append(_told(actor, outcome))
            if not actor.is_outside:
                actor.past = _digest(actor.past, actor.seen, actor.label, outcome, self.observed(actor.process))
                actor.seen.clear()
            actor.greenlet.switch(outcome)
        raise AssertionError("a run has no end: " + " / ".join(self.log[-30:]))

    def close(self):
        """End what is left of every actor."""
        self.is_ended = True
        for actor in self.actors:
            if actor.greenlet and not actor.greenlet.dead:
                actor.greenlet.throw()

    def _options(self):
        options = []
        for actor in self.actors:
            if not actor.is_over:
                options += [(actor, outcome) for outcome in actor.outcomes()]
        return options

    def _state(self):
        waiting = sorted((each.name, each.label, each.past, each.seen) for each in self.actors if not each.is_over)
        return _digest(self.shared(), *waiting)


def see(what):
    """Note what the actor that moves has come to know, such as a row of the ledger."""
    if (actor := getattr(getcurrent(), "actor", None)) and not actor.is_outside:
        actor.seen.append(what)


def _told(actor, outcome):
    return f"{actor.name}: {actor.label} {outcome}".strip()


def _digest(*values):
    return blake2b(repr(values).encode(), digest_size=12).digest()
