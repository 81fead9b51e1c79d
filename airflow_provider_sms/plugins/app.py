"""The application that Airflow's web server mounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Depends, FastAPI, Request, Response, status
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from airflow_provider_sms.exceptions import InputError, SmsError
from airflow_provider_sms.plugins import actions, pages, static_files, templating
from airflow_provider_sms.plugins.authorization import airflow_user

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_HEADERS = {
    # Should a text ever slip through unescaped, the browser still runs nothing of it, and asks no other host.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def create_app() -> FastAPI:
    """Build the application. Every route of it requires a user of Airflow."""
    # No generated documentation: its pages load scripts from another host.
    app = FastAPI(title="SMS", openapi_url=None, dependencies=[Depends(airflow_user)])
    app.include_router(pages.router)
    app.include_router(actions.router)
    app.include_router(static_files.router)

    @app.middleware("http")
    async def guarded(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        for name, value in _HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    @app.exception_handler(SmsError)
    async def failed(request: Request, error: SmsError) -> Response:
        code = status.HTTP_409_CONFLICT if isinstance(error, InputError) else status.HTTP_503_SERVICE_UNAVAILABLE
        return templating.refusal(request, str(error), code)

    @app.exception_handler(RequestValidationError)
    async def misread(request: Request, error: RequestValidationError) -> Response:
        # By their names alone: what was sent may be somebody's number.
        fields = ", ".join(sorted({str(each["loc"][-1]) for each in error.errors()}))
        return templating.refusal(request, f"This cannot be read as it was sent: {fields}", 422)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return templating.refusal(request, str(error.detail), error.status_code)

    return app
