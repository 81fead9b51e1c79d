"""How long to wait between two looks, for whoever may have forgotten how many there were: a pure function."""

from __future__ import annotations

import hashlib


def backed_off(poke_interval: float, *, elapsed: float, seed: str) -> float:
    """Give the seconds to wait with exponential backoff, as Airflow's sensors of mode ``reschedule`` do.

    The wait before look ``n + 1`` is drawn between ``b`` and ``2 b``, with ``b`` half of the interval at first and
    doubled by each look, cut to whole seconds, at least 1. Which look it is follows from the time elapsed alone, so
    that a triggerer that was started anew goes on where the other one was.

    :param poke_interval: the sensor's, in seconds.
    :param elapsed: seconds since the sensor's first look.
    :param seed: what the jitter is drawn from; the same for all looks of a sensor.
    """
    base, due, looks = poke_interval / 2, 0.0, 0
    while True:
        looks += 1
        least = max(int(base), 1)
        digest = hashlib.sha1(f"{seed}#{looks}".encode(), usedforsecurity=False).hexdigest()
        wait = least + int(digest, 16) % least
        due += wait
        if due > elapsed:
            return wait
        base *= 2
