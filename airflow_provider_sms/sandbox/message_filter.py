"""Which messages of a request can be sent, at what price, and why the others cannot."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from airflow_provider_sms.messages.parts import count_parts
from airflow_provider_sms.sandbox.networks import Network, network_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable


@dataclass(frozen=True, slots=True)
class SendableMessage:
    """A message that can be sent.

    :param index: position of the message in the request, from 0.
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
        """Credits for all parts of the text."""
        return self.parts * self.network.price


@dataclass(frozen=True, slots=True)
class FilteredMessages:
    """The sendable messages of a request, and the number of others by reason.

    :param sendable: the messages that can be sent, in request order.
    :param duplicates: messages with the destination and text of an earlier one in the request.
    :param opted_outs: messages to numbers that have opted out.
    :param no_network: messages to numbers that no network serves.
    """

    sendable: tuple[SendableMessage, ...]
    duplicates: int
    opted_outs: int
    no_network: int

    @property
    def cost(self) -> Decimal:
        """Credits for the whole request."""
        return sum((message.cost for message in self.sendable), Decimal(0))


def filter_messages(messages: Iterable[tuple[str, str]], opted_out: Container[str]) -> FilteredMessages:
    """Return the sendable messages of a request. Each other message counts once, under the first reason that applies.

    :param messages: pairs of destination and text.
    :param opted_out: destinations that have opted out.
    """
    seen: set[tuple[str, str]] = set()
    sendable = []
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
            sendable.append(SendableMessage(index, destination, content, count_parts(content), network))
        seen.add((destination, content))
    return FilteredMessages(tuple(sendable), duplicates, opted_outs, no_network)
