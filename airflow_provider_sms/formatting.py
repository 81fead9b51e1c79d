"""Numbers, money, times and tasks as pages, commands and errors write them: pure functions."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

UNKNOWN = "—"
"""Written for a figure that is not known."""

MAX_LISTED = 20
"""Names or sentences that one message lists: with a campaign for each run there are many."""

_STEPS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


def number(value: float | None) -> str:
    """Return a count with thousands separators; a dash if it is not known."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def money(value: Decimal | float | str | None) -> str:
    """Return credits with two to six decimals, as many as there are; a dash if they are not known."""
    if value is None:
        return UNKNOWN
    amount = value if isinstance(value, Decimal) else Decimal(str(value))
    exponent = amount.as_tuple().exponent
    decimals = -exponent if isinstance(exponent, int) else 0
    return f"{amount:,.{min(max(decimals, 2), 6)}f}"


def at_least(cost: str, unknown: int) -> str:
    """Return a cost as written, and that it is a lower bound where requests may have cost more.

    :param unknown: requests of which nothing tells the cost.
    """
    return f"at least {cost}, and what {counted(unknown, 'request')} cost is not known" if unknown else cost


def utc(at: float | None) -> str:
    """Return a time in UTC for people; a dash for None.

    :param at: seconds since the epoch.
    """
    return UNKNOWN if at is None else f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M:%S}"


def iso(at: float) -> str:
    """Return a time as ISO 8601, in UTC and whole seconds.

    :param at: seconds since the epoch.
    """
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="seconds")


def duration(seconds: float) -> str:
    """Return a length of time, rounded to the largest unit of which there are at least two."""
    for size, unit in _STEPS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, as pages and commands write it: ``1 message``, ``2,000 messages``.

    :param plural: None means the noun with an *s*.
    """
    return f"{count:,} {by_count(count, noun, plural)}"


def by_count(count: Decimal | float, one: str, many: str | None = None) -> str:
    """Return the word that goes with a count: ``row`` with 1, ``rows`` with any other.

    Logs, errors and plans write the count itself without thousands separators.

    :param many: None means the word with an *s*.
    """
    return one if count == 1 else many or f"{one}s"


def join_some(names: Sequence[str]) -> str:
    """Return names as one text: the first :data:`MAX_LISTED`, and how many more there are."""
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


def percent(part: float | None, whole: float | None) -> float | None:
    """Return a share in percent, from 0 to 100; None if either is not known, or there is no whole."""
    if part is None or not whole:
        return None
    return min(100.0, max(0.0, 100.0 * part / whole))


def task_words(dag_id: str, task_id: str, run_id: str, map_index: int) -> str:
    """Return a task instance in words.

    :param map_index: -1 for a task that is not mapped.
    """
    mapped = "" if map_index < 0 else f", map index {map_index}"
    return f"task {task_id} of DAG {dag_id}, run {run_id}{mapped}"
