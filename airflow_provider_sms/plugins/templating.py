"""Templates, in which everything is escaped, and answers made of them."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi.responses import HTMLResponse, JSONResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from airflow_provider_sms import formatting
from airflow_provider_sms.plugins.sms import PREFIX

if TYPE_CHECKING:
    from fastapi import Request, Response


def page(request: Request, template: str, status_code: int = 200, **values: Any) -> Response:
    """Give a page.

    :param template: its file's name.
    :param values: what it shows.
    """
    root = root_of(request)
    html = _environment().get_template(template).render(root=root, airflow=root.removesuffix(PREFIX), **values)
    return HTMLResponse(html, status_code)


def root_of(request: Request) -> str:
    """Give the path that the application is mounted at, as the browser has it."""
    return str(request.scope.get("root_path", ""))


def refusal(request: Request, why: str, status_code: int) -> Response:
    """Say why a request is refused: as a page to who looks, as JSON to a script."""
    if "text/html" in request.headers.get("accept", ""):
        # Whom Airflow does not know is given neither styles nor scripts.
        template = "unknown_user.html" if status_code == HTTPStatus.UNAUTHORIZED else "refusal.html"
        return page(request, template, status_code, why=why, token=None)
    return JSONResponse({"detail": why}, status_code)


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
        duration=formatting.duration,
        part=lambda text: quote(str(text), safe=""),
    )
    environment.globals.update(
        counted=formatting.counted, percent=formatting.percent, network_name=formatting.network_name
    )
    return environment
