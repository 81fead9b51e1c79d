"""Keys of messages that are lists of Python's, and requests of such messages."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_sms.messages import keys
from airflow_provider_sms.messages.message import Outgoing


def message_keys(destinations, contents, key_values=None):
    """Return the key of each message."""
    return keys.message_keys(pa.array(destinations, pa.string()), pa.array(contents, pa.string()), key_values)


def sent_again(ledger, messages):
    """Return the keys of messages that are free, and that a superseded request had."""
    keys = [each.key for each in messages]
    return {key for key, again in zip(keys, ledger.look(b"".join(keys)).again, strict=True) if again}


def request_of(keys, destinations, parts=()):
    """Return the messages of a request whose texts do not matter."""
    return Outgoing(keys, destinations, [""] * len(keys), parts or [None] * len(keys))
