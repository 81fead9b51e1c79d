"""Keys of messages that are lists of Python's."""

from __future__ import annotations

from airflow_provider_sms.messages import keys


def message_keys(destinations, contents, key_values=None):
    """Return the key of each message."""
    return keys.message_keys(destinations, contents, key_values)
