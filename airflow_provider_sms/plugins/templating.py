"""Responses rendered from templates, in which everything is escaped."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi.responses import HTMLResponse, JSONResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from airflow_provider_sms import formatting
from airflow_provider_sms.ledger.account import verdict_words
from airflow_provider_sms.plugins import PREFIX

if TYPE_CHECKING:
    from fastapi import Request, Response


def render_page(request: Request, template: str, status_code: int = 200, **values: Any) -> Response:
    """Return a page.

    :param template: file name of the template.
    :param values: variables of the template.
    """
    root = root_path(request)
    html = _environment().get_template(template).render(root=root, airflow=root.removesuffix(PREFIX), **values)
    # A ledger may hold half an emoji, which UTF-8 cannot encode.
    return HTMLResponse(html.encode("utf-8", "replace"), status_code)


def root_path(request: Request) -> str:
    """Return the path at which the application is mounted, as the browser sees it."""
    return str(request.scope.get("root_path", ""))


def render_error(request: Request, error: str, status_code: int) -> Response:
    """Return an error: as a page for a browser, as JSON for a script."""
    if "text/html" in request.headers.get("accept", ""):
        # A visitor without an Airflow login gets neither styles nor scripts.
        known = status_code != HTTPStatus.UNAUTHORIZED
        return render_page(request, "error.html", status_code, error=error, known=known)
    return JSONResponse({"detail": error}, status_code)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("airflow_provider_sms.plugins"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=formatting.number,
        money=formatting.money,
        utc=formatting.utc,
        iso=formatting.iso,
        quote=lambda text: quote(str(text), safe=""),
    )
    environment.globals.update(
        counted=formatting.counted,
        percent=formatting.percent,
        verdict_words=verdict_words,
    )
    return environment
