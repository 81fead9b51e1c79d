"""The prices that a caller names: credits for each SMS part, for all numbers or by their first digits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from airflow_provider_sms.arguments import number
from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.exceptions import InputError

Price: TypeAlias = "float | Decimal | str"


class Prices:
    """Credits for SMS parts, as exact decimals: a float counts as it reads, and prefixes with or without a plus."""

    def __init__(self, cost_per_part: Price | Mapping[str, Price] = 1) -> None:
        by_prefix = cost_per_part if isinstance(cost_per_part, Mapping) else {"": cost_per_part}
        if not by_prefix:
            raise InputError("cost_per_part has no price: name at least one, '' for all numbers")
        self._prices = {
            _prefix(key): _price(value, f"cost_per_part[{key!r}]" if by_prefix is cost_per_part else "cost_per_part")
            for key, value in by_prefix.items()
        }
        if len(self._prices) < len(by_prefix):
            raise InputError("cost_per_part has two prices for one prefix, with and without a plus")
        self._lengths = sorted({len(prefix) for prefix in self._prices}, reverse=True)

    @property
    def are_default(self) -> bool:
        """Whether these are the prices of a task that names none: one credit for each part."""
        return self._prices == {"": 1}

    def of(self, destination: str, parts: int) -> Decimal:
        """Return the credits that a message costs; as many digits of its number as a prefix has are enough."""
        for length in self._lengths:
            price = self._prices.get(destination[:length])
            if price is not None:
                return price * parts
        raise InputError(
            f"cost_per_part has no price for numbers that begin with {destination[:4]}: add the first "
            "digits of these numbers, or '' for all others"
        )

    @own_decimals()
    def total(self, destinations: Sequence[str | None], parts: Sequence[int | None]) -> Decimal:
        """Return the credits that messages cost together; None is a group: one SMS part, at the lowest price."""
        least, longest = min(self._prices.values()), self._lengths[0]
        known = [count or 1 for count in parts]
        if not longest:
            return least * sum(known)  # one price for all
        beginnings = [None if to is None else to[:longest] for to in destinations]
        alike = Counter(zip(beginnings, known, strict=True)).items()
        return sum((times * (least if to is None else self.of(to, count)) for (to, count), times in alike), Decimal(0))


def _prefix(key: Any) -> str:
    prefix = key.removeprefix("+") if isinstance(key, str) else None
    if prefix is None or (key and not re.fullmatch("[1-9][0-9]*", prefix)):
        raise InputError(
            f"cost_per_part: {key!r} is not a prefix: write the first digits of numbers with country code as text, "
            "such as '27' or '+27', or '' for all others"
        )
    return prefix


def _price(value: Any, name: str) -> Decimal:
    try:
        price = Decimal(number(value))
    except ValueError:
        price = Decimal(-1)
    if price < 0:
        raise InputError(f"{name} is {value!r}: credits for one SMS part are a number, 0 or more")
    return price
