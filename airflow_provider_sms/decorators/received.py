"""What a decorated function receives, kept out of sight of what Airflow stores and shows."""

from __future__ import annotations

import os
from typing import Any

from airflow.providers.common.compat.sdk import Asset

from airflow_provider_sms.operators.rows import Rows, is_reference

_TEMPLATE = ("{{", "{%", "{#")


def shielded(value: Any, *, rendered: bool) -> Any:
    """Give an argument as a template field may hold it: wrapped, unless Airflow has something to render in it yet.

    Assets stay, since Airflow looks for them among the arguments.

    :param rendered: whether Airflow has rendered it.
    """
    if isinstance(value, (Rows, Asset)) or (not rendered and _is_to_be_rendered(value)):
        return value
    return Rows(value)


def plain(value: Any) -> Any:
    """Give an argument as the function gets it."""
    return value.data if isinstance(value, Rows) else value


def _is_to_be_rendered(value: Any) -> bool:
    """Whether a template or a reference to another task's result is in a value."""
    if isinstance(value, (list, tuple, set)):
        return any(map(_is_to_be_rendered, value))
    if isinstance(value, dict):
        return any(map(_is_to_be_rendered, value.values()))
    if isinstance(value, (str, os.PathLike)):
        text = str(value)
        return any(mark in text for mark in _TEMPLATE)
    return is_reference(value) or hasattr(value, "template_fields")
