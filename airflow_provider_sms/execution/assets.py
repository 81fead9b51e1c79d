"""Assets as sources: the place of their files, and the inlets that they become.

A module of its own, small as it is: operators need the inlets, and nothing of redaction.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import unquote, urlsplit

from airflow.providers.common.compat.sdk import Asset

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.recipients.paths import without_secrets


def asset_location(asset: Asset) -> str | None:
    """Return the path of a ``file://`` asset (RFC 8089), and the URI of another; None where it names no place."""
    parts = urlsplit(asset.uri)
    if parts.scheme == "file":
        # file://data/people is the folder /people of a machine called data: a slash is missing.
        return unquote(parts.path) if parts.netloc in ("", "localhost") else None
    return asset.uri if "://" in asset.uri or PurePath(asset.uri).is_absolute() else None


def require_location(asset: Asset) -> str:
    """Return the place of an asset's files.

    :raises InputError: the asset's URI names no place.
    """
    location = asset_location(asset)
    if location is None:
        name = getattr(asset, "name", asset.uri)  # before Airflow 3, assets have no names
        raise InputError(
            f"source: asset {name!r} names no place of files: its URI is {without_secrets(asset.uri)!r}; "
            "it should be one such as 'file:///data/people/' or 's3://bucket/people/'"
        )
    return location


def with_assets(inlets: list[Any], source: Any) -> list[Any]:
    """Return the inlets of a task that reads a source: its own, and the source's assets."""
    found = [asset for asset in (source if isinstance(source, (list, tuple)) else [source]) if isinstance(asset, Asset)]
    return [*inlets, *(asset for asset in found if asset not in inlets)]
