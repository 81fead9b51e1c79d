"""The cases: one idea per module, each a function that returns figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cases.importing import importing
from benchmarks.cases.large import large, resume
from benchmarks.cases.opening import pages
from benchmarks.cases.sending import postgres, rate, slow
from benchmarks.cases.starting import start

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.bench import Bench
    from benchmarks.figures import Figure

CASES: dict[str, Callable[[Bench], list[Figure]]] = {
    "rate": rate,
    "postgres": postgres,
    "slow": slow,
    "large": large,
    "resume": resume,
    "start": start,
    "import": importing,
    "pages": pages,
}
