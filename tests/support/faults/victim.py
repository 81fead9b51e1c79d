"""A process that runs one attempt of a campaign, and kills or stops itself at a named point.

It imports the engine but not Airflow: ``python -m support.faults.victim SPECIFICATION``.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import make_url

from support.faults.halts import NEVER, Halts
from support.faults.points import struck
from support.faults.tries import Campaign, Ledgers, attempt

if TYPE_CHECKING:
    from collections.abc import Mapping


def start(
    campaign: Campaign,
    point: str,
    nth: int,
    with_signal: signal.Signals,
    clock: Path,
    *,
    halts: Halts = NEVER,
) -> subprocess.Popen[str]:
    """Start a victim, which prints its summary if it survives.

    :param with_signal: signal that it sends to itself at the point: SIGKILL or SIGSTOP.
    :param clock: file with the seconds by which its clock is ahead.
    :param halts: the point at which it ends early to wait.
    """
    specification = {
        "campaign": [getattr(campaign, field.name) for field in fields(campaign) if field.name != "ledgers"],
        "ledger": campaign.ledgers.url.render_as_string(hide_password=False),
        "point": point,
        "nth": nth,
        "signal": int(with_signal),
        "clock": str(clock),
        "halts": asdict(halts),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "support.faults.victim", json.dumps(specification)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
    )


def main(specification: Mapping[str, Any]) -> None:
    """Run the attempt, and print the summary."""
    logging.getLogger("airflow_provider_sms").setLevel(logging.CRITICAL)
    ledgers = Ledgers(make_url(specification["ledger"]))
    clock = Path(specification["clock"])
    with struck(specification["point"], specification["nth"], lambda: _strike(specification["signal"])) as turn:
        ended = attempt(
            Campaign(ledgers, *specification["campaign"]),
            ahead=lambda: float(clock.read_text()),
            timeout=60.0,
            busy_seconds=2.0,
            halts=Halts(**specification["halts"]),
        )
    sys.stdout.write(json.dumps({"struck": turn.struck, "summary": ended.summary}))


def _strike(number: int) -> None:
    """Send a signal to this thread: one to the process may reach another thread, and this one goes on for a moment."""
    signal.pthread_kill(threading.get_ident(), number)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
