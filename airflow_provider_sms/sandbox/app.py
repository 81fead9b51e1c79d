"""The sandbox as one FastAPI application."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from airflow_provider_sms.sandbox.control import Control
from airflow_provider_sms.sandbox.errors import RefusalError
from airflow_provider_sms.sandbox.page import Page
from airflow_provider_sms.sandbox.responses import HangUp, JsonResponse
from airflow_provider_sms.sandbox.service import Service
from airflow_provider_sms.sandbox.state import SandboxState
from airflow_provider_sms.sandbox.trusted_hosts import TrustedHosts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_provider_sms.sandbox.config import SandboxConfig

BASE_PATHS = ("/v1", "/api/v1")
"""Both base paths serve every operation, because the contract shows one for sending and the other for the balance."""


def create_app(config: SandboxConfig) -> FastAPI:
    """Return the application of a new sandbox, whose memory is ``app.state.sandbox``.

    Faults that drop or truncate a response need the server of ``running_sandbox`` or of the command line: no other
    server passes the connection to the application.

    :param config: the sandbox's settings.
    :raises OSError: when the witness cannot be opened.
    """
    state = SandboxState(config)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        state.close()

    # No generated documentation: its pages load scripts from another host.
    app = FastAPI(title="SMS sandbox", openapi_url=None, redirect_slashes=False, lifespan=lifespan)
    app.state.sandbox = state
    app.add_middleware(TrustedHosts)
    service = Service(state)
    for base in BASE_PATHS:
        app.add_api_route(f"{base}/bulkmessages", service.bulk, methods=["POST"])
        app.add_api_route(f"{base}/groupmessages", service.group, methods=["POST"])
        app.add_api_route(f"{base}/Balance", service.balance, methods=["GET"])
        app.add_api_route(f"{base}/Authentication", service.authentication, methods=["GET"])
    app.include_router(Control(state).router())
    app.include_router(Page(state).router())

    @app.exception_handler(RefusalError)
    async def refused(_request: Request, error: RefusalError) -> Response:
        return JsonResponse(error.body(), error.status)

    @app.exception_handler(HTTPException)
    async def not_found(_request: Request, error: HTTPException) -> Response:
        body = RefusalError(error.status_code, ("EntityNotFound", error.detail)).body()
        return JsonResponse(body, error.status_code, error.headers)

    @app.exception_handler(ClientDisconnect)
    async def disconnected(_request: Request, _error: ClientDisconnect) -> Response:
        return HangUp()  # the client has gone: no response can reach it

    return app
