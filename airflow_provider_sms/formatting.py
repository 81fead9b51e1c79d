"""How pages write numbers, money and times: pure functions."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal

UNKNOWN = "—"
"""What stands for a figure that is not known."""

_STEPS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


def number(value: float | None) -> str:
    """Write a count; a dash where it is not known."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def money(value: Decimal | float | str | None) -> str:
    """Write credits, with two decimals or as many as there are; a dash where they are not known."""
    if value is None:
        return UNKNOWN
    amount = value if isinstance(value, Decimal) else Decimal(str(value))
    exponent = amount.as_tuple().exponent
    decimals = -exponent if isinstance(exponent, int) else 0
    return f"{amount:,.{min(max(decimals, 2), 6)}f}"


def utc(at: float | None) -> str:
    """Write a moment, of seconds since the epoch; a dash where there is none."""
    return UNKNOWN if at is None else f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M:%S}"


def iso(at: float) -> str:
    """Write a moment as machines read it."""
    return datetime.fromtimestamp(at, timezone.utc).isoformat()


def duration(seconds: float) -> str:
    """Write a length of time, about."""
    for size, unit in _STEPS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def counted(count: int, thing: str, things: str | None = None) -> str:
    """Write how many there are of something."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def percent(part: float | None, whole: float | None) -> float | None:
    """Give a share of 100, from 0 to 100; None where it is not known."""
    if part is None or not whole:
        return None
    return min(100.0, max(0.0, 100.0 * part / whole))


def network_name(name: str) -> str:
    """Write a network; the service may give it no name."""
    return name or "(no name)"
