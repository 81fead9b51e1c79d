"""What becomes of each message of a request: accepted at a price, or left out for a reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from airflow_provider_sms.messages.parts import count_parts
from airflow_provider_sms.sandbox.networks import Network, network_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable


@dataclass(frozen=True, slots=True)
class Priced:
    """A message that can be sent.

    :param index: its position in the request, from 0.
    :param destination: digits with country code.
    :param content: the text.
    :param parts: SMS parts of the text.
    :param network: the network that serves the destination.
    """

    index: int
    destination: str = field(repr=False)
    content: str = field(repr=False)
    parts: int
    network: Network

    @property
    def cost(self) -> Decimal:
        """Credits for all its parts."""
        return self.parts * self.network.price


@dataclass(frozen=True, slots=True)
class Screened:
    """One request's messages, sorted out.

    :param priced: the messages that can be sent, in request order.
    :param duplicates: messages with the destination and text of an earlier one of the request.
    :param opted_outs: messages to someone who wants none.
    :param no_network: messages to a number that no network serves.
    """

    priced: tuple[Priced, ...]
    duplicates: int
    opted_outs: int
    no_network: int

    @property
    def cost(self) -> Decimal:
        """Credits for the whole request."""
        return sum((message.cost for message in self.priced), Decimal(0))


def screen(messages: Iterable[tuple[str, str]], opted_out: Container[str]) -> Screened:
    """Sort out the messages of one request. Each is counted once, for the first reason that holds.

    :param messages: pairs of destination and text.
    :param opted_out: destinations that want no messages.
    """
    seen: set[tuple[str, str]] = set()
    priced = []
    duplicates = opted_outs = no_network = 0
    for index, (destination, content) in enumerate(messages):
        network = network_of(destination)
        if (destination, content) in seen:
            duplicates += 1
        elif destination in opted_out:
            opted_outs += 1
        elif network is None:
            no_network += 1
        else:
            priced.append(Priced(index, destination, content, count_parts(content), network))
        seen.add((destination, content))
    return Screened(tuple(priced), duplicates, opted_outs, no_network)
