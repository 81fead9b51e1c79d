"""The page for a person: files of this package, which ask no other host for anything."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import Response

INDEX = "index.html"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Should a text ever slip in as markup, the browser still runs and loads nothing of it."""

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def assets() -> dict[str, bytes]:
    """Give the page's files by name."""
    folder = files("airflow_provider_sms.sandbox") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES}


def answer(name: str) -> Response:
    """Give one of the page's files.

    :param name: its name.
    :raises KeyError: when there is none of that name.
    """
    return Response(assets()[name], headers=HEADERS, media_type=_TYPES[name.rpartition(".")[2]])
