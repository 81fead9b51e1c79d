"""Random schedules of tables, attempts, faults of service and ledger, crashes, zombies and clocks, by seed."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import SmsError
from airflow_provider_sms.stop_flag import StopFlag
from support.faults.halts import NEVER
from support.faults.lives import PATIENCE, DiedError, Life, Wire
from support.faults.plans import plan_of
from support.faults.sendings import Clock, Sending
from support.faults.stage import play_all
from support.faults.verdict import Figures

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from support.faults.plans import Plan, Try
    from support.faults.stage import Stage

MOST_TRIES = 4
FULL = 5_000
QUICK = 150


class Playing(threading.Thread):
    """An attempt in its own thread, like in its own process."""

    def __init__(self, game: Game, place: int, number: int, planned: Try) -> None:
        super().__init__(name=f"part-{place}", daemon=True)
        self._game = game
        self._number = number
        self._planned = planned
        self._stopping = StopFlag()
        acts = {
            "jump": lambda: game.clock.jump(1000.0),
            "back": lambda: game.clock.jump(-500.0),
            "stop": self._stopping.set,
            "wake": game.wake,
        }
        self.life = Life(planned.mishaps, acts)
        self._wire = game.wires[place]
        self._wire.life = self.life
        self.miscounted = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        plan, planned = self._game.plan, self._planned
        try:
            sending = self._game.sending(
                self._wire,
                self._number,
                stop=self._stopping,
                tick=plan.tick,
                timeout=plan.timeout,
                around=self._around,
                stop_conditions=planned.halts.stop_conditions(len(plan.rows)),
            )
            sending.run([plan.rows[position] for position in planned.order])
            self.miscounted = sending.miscounted
        except (DiedError, SmsError):
            pass  # its process is gone, or its ledger did not open: the next attempt must find what it left
        except BaseException as error:  # noqa: BLE001  # the thread that waits for this attempt raises it
            self.error = error
        finally:
            self.life.left.set()

    def _around(self, post: Callable[[], Any]) -> Any:
        self.life.pass_by("post")
        try:
            return post()
        finally:
            self.life.pass_by("posted")


class Game:
    """One run of a schedule.

    :param clock: clock that simultaneous schedules share; None means no other schedule.
    """

    def __init__(
        self,
        stage: Stage,
        wires: list[Wire],
        plan: Plan,
        *,
        resend: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._resend = resend
        self.plan = plan
        self.stage = stage
        self.wires = wires
        self.clock = clock or Clock()
        self._number = 0
        self.campaign = stage.new_campaign(f"schedule {plan.seed}")
        self._tries: list[Playing] = []

    def sending(self, wire: Wire, number: int, **how: Any) -> Sending:
        """Enter the campaign as one more attempt."""
        return Sending(
            self.stage.sandbox.base_url,
            wire.store,
            self.campaign,
            number,
            clock=self.clock,
            chunk_size=self.plan.chunk_size,
            concurrency=self.plan.concurrency,
            on_unknown="resend" if self._resend else "fail",
            **how,
        )

    def wake(self) -> None:
        """Resume every attempt that hangs."""
        for playing in self._tries:
            playing.life.wake()

    def play(self) -> Figures:
        """Run the attempts, then one without faults once every deadline has passed, and judge."""
        self.stage.sandbox.state.set_faults(self.plan.faults)
        self.send()
        last = self.send_rest()
        return self.stage.judge(self.campaign, self.plan.rows, last) + Figures(lost=self.miscounted)

    def send(self) -> None:
        """Run the attempts."""
        for place, planned in enumerate(self.plan.tries):
            self._number += not planned.resumed
            if self._tries and not planned.overlaps:
                _await(self._tries[-1])
            self.clock.jump(planned.later)
            planned.halts.begin(self.stage.sandbox.state)
            playing = Playing(self, place, self._number, planned)
            self._tries.append(playing)
            playing.start()
        self._end()

    def send_rest(self) -> Sending:
        """Run an attempt without faults once every deadline has passed, or the last leg of the one before.

        Of a try that resent in vain, the next one resends.
        """
        self.stage.sandbox.state.set_faults([])
        NEVER.begin(self.stage.sandbox.state)
        self.clock.jump(10_000.0)
        last = self.sending(self.wires[-1], self._number + (self._resend or not self.plan.last_resumed))
        last.run([self.plan.rows[position] for position in self.plan.last])
        return last

    @property
    def miscounted(self) -> int:
        """The wrong counts of all attempts except the last one."""
        return sum(playing.miscounted for playing in self._tries)

    def _end(self) -> None:
        """Wait for all threads: only then can nothing send any more."""
        for playing in self._tries:
            _await(playing)
        for playing in self._tries:
            playing.life.wake(for_good=True)
        for playing in self._tries:
            playing.join(PATIENCE)
            if playing.is_alive():
                raise TimeoutError(f"{playing.name} does not end")
            if playing.error is not None:
                raise playing.error
        for wire in self.wires:
            wire.life = None


def _await(playing: Playing) -> None:
    if not playing.life.left.wait(PATIENCE):
        raise TimeoutError(f"{playing.name} neither ends nor dies")


def run(
    open_store: Callable[[], LedgerBackend],
    quick: bool,  # noqa: FBT001  # the common signature of all sections
    *,
    first: int = 0,
    count: int | None = None,
    resend: bool = False,
) -> Figures:
    """Run schedules on one kind of ledger, and print how to replay those that broke the promise.

    :param open_store: function that opens the shared ledger, like one more process.
    :param first: the first seed.
    :param count: number of schedules; None means 150 in a quick run, else 5,000.
    :param resend: whether what is unknown is sent again, at least once: then duplicates are no fault, and what is
        unknown at the end is.
    """
    wires: list[Wire] = []

    def play(stage: Stage, seed: int) -> Figures:
        if not wires:
            wires.extend(Wire(stage.open_store()) for _ in range(MOST_TRIES + 1))
        figures = Game(stage, wires, plan_of(seed), resend=resend).play()
        return replace(figures, duplicates=0, lost=figures.lost + figures.unknown) if resend else figures

    def again(stage: Stage, seed: int) -> str:
        how = f"--store {stage.kind} --seed {seed}{' --resend' * resend}"
        return f"PYTHONPATH=tests:. python -m support.faults.schedules {how}"

    figures = play_all(
        open_store, play, range(first, first + (count if count is not None else QUICK if quick else FULL)), again
    )
    return replace(figures, duplicates=0) if resend else figures


def main() -> int:
    """Run schedules from the command line."""
    from support.faults.stores import STORES, a_ledger

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=STORES, default=STORES[0])
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--resend", action="store_true", help="send again what is unknown")
    arguments = parser.parse_args()
    began = time.monotonic()
    with a_ledger(arguments.store) as open_store:
        figures = run(open_store, quick=False, first=arguments.seed, count=arguments.count, resend=arguments.resend)
    print(f"{arguments.store}: {figures} in {time.monotonic() - began:.1f} s")  # noqa: T201  # a command's result
    return 1 if figures.broken else 0


if __name__ == "__main__":
    sys.exit(main())
