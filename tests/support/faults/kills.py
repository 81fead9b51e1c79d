"""The kill matrix: an attempt dies, hangs or fails at every point, and a successor continues."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.faults import victim
from support.faults.arena import LATER, Arena
from support.faults.points import IN_TRANSACTION, NOTE_POINTS, POINTS, RAISING, struck
from support.faults.tries import Ended, attempt

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from support.faults.tries import Campaign, Ledgers
    from support.faults.verdict import Figures

REQUESTS = (1, 5, 10)
"""The requests, of ten, at which the failure occurs."""

QUICK = {
    "killed": ("claim inserted", "claim committed", "half sent", "answered", "recorded", "in finish"),
    "hung": ("handed over", "sent"),
    "error": RAISING,
    "interrupt": RAISING[::3],
}
"""The points of a quick run, at the middle request."""

NOTES = (1, 2, 3)
"""The progress notes at which the failure occurs; the second one precedes the first claim."""

PATIENCE = 60.0
"""Seconds after which a victim counts as stuck."""


class InterruptedSend(BaseException):  # like KeyboardInterrupt
    """An error that a signal handler may raise."""


def run(
    ledgers: Ledgers,
    quick: bool,  # noqa: FBT001  # the common signature of all sections
    *,
    reconciles: bool = False,
) -> Figures:
    """End an attempt at every point of its first, middle and last request, in every way.

    :param ledgers: function that opens the ledger.
    :param quick: True selects some points of the middle request.
    :param reconciles: whether lost requests are closed by what the balance proves; then it selects some cases, too.
    """
    with Arena(ledgers, keep_alive=PATIENCE, reconciles=reconciles) as arena:
        chosen = list(cases(quick=quick or reconciles))
        for way, point, nth in chosen[::6] if quick and reconciles else chosen:
            one(arena, way, point, nth)
    return arena.figures


def cases(*, quick: bool) -> Iterator[tuple[str, str, int]]:
    """Yield the ways, points and requests."""
    if quick:
        yield from ((way, point, 5) for way, points in QUICK.items() for point in points)
        yield from ((way, "in a note", 2) for way in QUICK)
    else:
        yield from itertools.product(("killed", "hung"), POINTS, REQUESTS)
        yield from itertools.product(("error", "interrupt"), RAISING, REQUESTS)
        yield from itertools.product(QUICK, NOTE_POINTS, NOTES)


def one(arena: Arena, way: str, point: str, nth: int) -> None:
    """Run one case.

    :raises AssertionError: when the point was never reached.
    """
    campaign = arena.campaign()
    name = f"{way} at {point!r} of {'note' if point in NOTE_POINTS else 'request'} {nth}"
    play = {"killed": killed, "hung": hung}.get(way)
    ended = play(arena, campaign, point, nth) if play else failed(campaign, way, point, nth)
    arena.look(campaign, ended)
    arena.resume(name, campaign)


def killed(arena: Arena, campaign: Campaign, point: str, nth: int, **part: Any) -> None:
    """Let a process kill itself.

    :param part: as for :func:`victim.start`.
    """
    with tempfile.TemporaryDirectory() as folder:
        process = victim.start(campaign, point, nth, signal.SIGKILL, _clock(folder), **part)
        _output(process)
    assert process.returncode == -signal.SIGKILL, f"{point} was not passed {nth} times"


def hung(arena: Arena, campaign: Campaign, point: str, nth: int, *, again: bool = False) -> Ended:
    """Let a process stop itself; a successor takes over once its deadlines have passed; then it resumes and ends.

    :param again: whether the successor is the same attempt, run twice by Airflow; else it is a retry.
    """
    with tempfile.TemporaryDirectory() as folder:
        clock = _clock(folder)
        process = victim.start(campaign, point, nth, signal.SIGSTOP, clock)
        try:
            _wait_until_stopped(process)
            # A file stays locked while the process hangs; a server ends the session that holds the lock.
            locked = point in IN_TRANSACTION and campaign.ledgers.name == "sqlite"
            successor = attempt(
                campaign,
                1 if again else 2,
                concurrency=2,
                ahead=lambda: LATER,
                busy_seconds=0.3 if locked else PATIENCE,
            )
            assert (successor.error is not None) == locked, "a successor goes on exactly where the ledger lets it"
            arena.look(campaign, successor)
            clock.write_text(str(LATER))
        except BaseException:
            process.kill()
            raise
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGCONT)
                output = _output(process)
    assert process.returncode == 0, "the process that hung did not end in order"
    return Ended(json.loads(output)["summary"])


def failed(
    campaign: Campaign, way: str, point: str, nth: int, play: Callable[[Campaign], Ended] = attempt
) -> Ended | None:
    """Let an attempt meet an unexpected error, or an interruption.

    :param play: function that runs the attempt.
    """

    def strike() -> None:
        raise RuntimeError("on purpose") if way == "error" else InterruptedSend

    ended = None
    with struck(point, nth, strike) as turn, contextlib.suppress(RuntimeError, InterruptedSend):
        ended = play(campaign)
    assert turn.struck, f"{point} was not passed {nth} times"
    return ended


def _clock(folder: str) -> Path:
    clock = Path(folder) / "clock"
    clock.write_text("0")
    return clock


def _output(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=PATIENCE)[0]
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def _wait_until_stopped(process: subprocess.Popen[str]) -> None:
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        process.returncode = os.waitstatus_to_exitcode(status)
        raise AssertionError("the process ended before it could hang")
