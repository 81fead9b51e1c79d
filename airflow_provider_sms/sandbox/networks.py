"""Which network a number belongs to, and what a part of a text costs there: a small made-up table."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Network:
    """One network.

    :param name: its name in ``CostBreakDown``.
    :param price: credits per SMS part.
    """

    name: str
    price: Decimal


LOCAL = Network("Local", Decimal(1))
INTERNATIONAL = Network("International", Decimal("2.4"))

NETWORKS: dict[str, Network | None] = {
    "2700": None,  # the range for tests: numbers that no network serves
    "276": Network("Acacia", Decimal("0.35")),
    "277": Network("Baobab", Decimal("0.8")),
    "27": LOCAL,
}
"""Network by the first digits of a number; the longest match counts, and what matches nothing is abroad."""

_PREFIXES = sorted(NETWORKS, key=len, reverse=True)


def network_of(destination: str) -> Network | None:
    """Find the network that serves a number.

    :param destination: digits with country code.
    :returns: the network, or None when no network serves the number.
    """
    for prefix in _PREFIXES:
        if destination.startswith(prefix):
            return NETWORKS[prefix]
    return INTERNATIONAL
