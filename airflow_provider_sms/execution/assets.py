"""Assets as sources: where their files are, and the lineage that they leave."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import unquote, urlsplit

from airflow.providers.common.compat.sdk import Asset

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.recipients.paths import without_secrets


def asset_location(asset: Asset) -> str | None:
    """Give the path of a ``file://`` asset (RFC 8089), and of another one its URI; None where it names no place."""
    parts = urlsplit(asset.uri)
    if parts.scheme == "file":
        # file://data/people is the folder /people of a machine called data: a slash is missing.
        return unquote(parts.path) if parts.netloc in ("", "localhost") else None
    return asset.uri if "://" in asset.uri or PurePath(asset.uri).is_absolute() else None


def require_location(asset: Asset) -> str:
    """Give where an asset's files are.

    :raises InputError: names the asset, and what its URI should be.
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
    """Give the inlets of a task that reads a source: its assets are among them."""
    found = [asset for asset in (source if isinstance(source, (list, tuple)) else [source]) if isinstance(asset, Asset)]
    return [*inlets, *(asset for asset in found if asset not in inlets)]
