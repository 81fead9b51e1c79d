"""The application that Airflow's web server mounts: routes, static files, errors and security headers."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import Depends, FastAPI, Request, Response, status
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from airflow_provider_sms.exceptions import InputError, SmsError
from airflow_provider_sms.plugins import actions, pages, templating
from airflow_provider_sms.plugins.authorization import airflow_user

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

_HEADERS = {
    # If a text ever gets through unescaped, the browser runs none of it and contacts no other host.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_NO_LEDGER = (
    "There is no ledger that this page can read. The first task that sends creates it. If a task has sent already, the "
    "web server's log says what is wrong"
)
_LEDGER_FAILED = "The ledger cannot be used now. Try again later. The web server's log says what is wrong"
_STATIC = Path(__file__).parent / "static"
_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_STATIC_FILES = frozenset(path.name for path in _STATIC.iterdir() if path.suffix in _MEDIA_TYPES)


def create_app() -> FastAPI:
    """Build the application. Every route requires a user of Airflow."""
    # Without generated documentation, whose pages load scripts from another host.
    app = FastAPI(title="SMS", openapi_url=None, dependencies=[Depends(airflow_user)])
    app.include_router(pages.router)
    app.include_router(actions.router)
    app.get("/static/{name}")(static_file)

    @app.middleware("http")
    async def add_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        for name, value in _HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    @app.exception_handler(SmsError)
    async def sms_error(request: Request, error: SmsError) -> Response:
        # Its words may name the ledger's file, or the database's host, port and role: they are for the log alone.
        log.error("The ledger cannot be used for %s: %s", request.url.path, error)
        if isinstance(error, InputError):
            return templating.render_error(request, _NO_LEDGER, status.HTTP_409_CONFLICT)
        return templating.render_error(request, _LEDGER_FAILED, status.HTTP_503_SERVICE_UNAVAILABLE)

    @app.exception_handler(RequestValidationError)
    async def validation_error(request: Request, error: RequestValidationError) -> Response:
        # Only the names of fields: a value may be somebody's number.
        fields = ", ".join(sorted({str(each["loc"][-1]) for each in error.errors()}))
        return templating.render_error(request, f"The request has invalid values for: {fields}. Nothing was done", 422)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        response = templating.render_error(request, str(error.detail), error.status_code)
        response.headers.update(error.headers or {})
        return response

    return app


def static_file(name: str) -> Response:
    """Return a style, script or picture of this package.

    It is sent whole, and not as a ``FileResponse``: before Starlette 0.49.1, which Airflow 3.1 excludes, a
    ``Range`` header with many ranges kept it busy for seconds.
    """
    if name not in _STATIC_FILES:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "This file does not exist")
    path = _STATIC / name
    headers = {"Cache-Control": "private, max-age=3600"}
    return Response(path.read_bytes(), media_type=_MEDIA_TYPES[path.suffix], headers=headers)
