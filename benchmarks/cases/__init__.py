"""The cases: one idea per module, each a function that returns figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cases.backpressure import backpressure
from benchmarks.cases.competing import senders
from benchmarks.cases.growing import ledger
from benchmarks.cases.importing import importing
from benchmarks.cases.large import large, resume
from benchmarks.cases.opening import pages
from benchmarks.cases.peers import peers
from benchmarks.cases.preparing import prepare
from benchmarks.cases.profiling import profile
from benchmarks.cases.querying import query
from benchmarks.cases.sending import postgres, rate, slow
from benchmarks.cases.starting import start
from benchmarks.cases.storing import storage
from benchmarks.cases.watching import polled

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.bench import Bench
    from benchmarks.figures import Figure

CASES: dict[str, Callable[[Bench], list[Figure]]] = {
    "rate": rate,
    "postgres": postgres,
    "slow": slow,
    "prepare": prepare,
    "profile": profile,
    "large": large,
    "resume": resume,
    "start": start,
    "query": query,
    "import": importing,
    "peers": peers,
    "ledger": ledger,
    "storage": storage,
    "senders": senders,
    "backpressure": backpressure,
    "pages": pages,
    "polled": polled,
}
