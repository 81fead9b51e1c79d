"""Protection from cross-site requests: another site could make the browser send one with the user's cookie.

The page holds a token, signed with the web server's secret and bound to its user, and sends it in a header, which no
form and no script of another site can set.
"""

from __future__ import annotations

from typing import Annotated

from airflow.configuration import conf
from fastapi import Depends, Header, HTTPException, Request, status
from itsdangerous import BadSignature, URLSafeTimedSerializer

from airflow_provider_sms.plugins.authorization import Viewer

TOKEN_SECONDS = 86_400
"""One day: a page that has been open for longer must be reloaded before it can change anything."""

_SALT = "airflow-provider-sms.page"


def make_token(user_id: str) -> str:
    """Return the token for a user's page."""
    return str(_signer().dumps(user_id))


def require_token(request: Request, access: Viewer, x_sms_token: Annotated[str, Header()] = "") -> Viewer:
    """Return the user of a request that came from the user's own page.

    :raises HTTPException: 403: it did not.
    """
    site = request.headers.get("sec-fetch-site", "same-origin")
    try:
        owner = _signer().loads(x_sms_token, max_age=TOKEN_SECONDS)
    except BadSignature:
        owner = None
    if site != "same-origin" or owner != access.user_id:
        raise HTTPException(
            status.HTTP_403_FORBIDDEN,
            "This page has expired, or the request came from another site. Reload the page and try again",
        )
    return access


def _signer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(conf.get_mandatory_value("api", "secret_key"), salt=_SALT)


VerifiedViewer = Annotated[Viewer, Depends(require_token)]
"""The user of a request that came from the user's own page, as the argument of a route."""
