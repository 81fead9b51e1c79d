"""The network of each number, and its price per SMS part: a small made-up table."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Network:
    """A mobile network.

    :param name: its name in ``CostBreakDown``.
    :param price: credits per SMS part.
    """

    name: str
    price: Decimal


LOCAL = Network("Local", Decimal(1))
INTERNATIONAL = Network("International", Decimal("2.4"))

NETWORKS: dict[str, Network | None] = {
    "2799": None,  # a range for tests: no network serves these numbers
    "276": Network("Acacia", Decimal("0.35")),
    "277": Network("Baobab", Decimal("0.8")),
    "27": LOCAL,
}
"""Networks by the first digits of a number. The longest match wins; a number without a match is international."""

_PREFIXES = sorted(NETWORKS, key=len, reverse=True)


def network_of(destination: str) -> Network | None:
    """Return the network that serves a number, or None when no network does.

    :param destination: digits with country code.
    """
    for prefix in _PREFIXES:
        if destination.startswith(prefix):
            return NETWORKS[prefix]
    return INTERNATIONAL
