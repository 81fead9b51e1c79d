"""Requests that change something come from our own page: another site could have the browser send one with its cookie.

The page holds a token, signed with the web server's secret and made for its user, and sends it as a header, which no
form and no other site's script can set.
"""

from __future__ import annotations

from typing import Annotated

from airflow.configuration import conf
from fastapi import Depends, Header, HTTPException, Request, status
from itsdangerous import BadSignature, URLSafeTimedSerializer

from airflow_provider_sms.plugins.authorization import Viewer

TOKEN_SECONDS = 86_400
"""How long a page may lie open before it is to be loaded again."""

_SALT = "airflow-provider-sms.page"


def make_token(user_id: str) -> str:
    """Give the token of a user's page."""
    return str(_signer().dumps(user_id))


def _require_own_page(request: Request, access: Viewer, x_sms_token: Annotated[str, Header()] = "") -> Viewer:
    site = request.headers.get("sec-fetch-site", "same-origin")
    try:
        owner = _signer().loads(x_sms_token, max_age=TOKEN_SECONDS)
    except BadSignature:
        owner = None
    if site != "same-origin" or owner != access.user_id:
        raise HTTPException(
            status.HTTP_403_FORBIDDEN, "This did not come from your own page, or the page is a day old: load it again"
        )
    return access


def _signer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(conf.get_mandatory_value("api", "secret_key"), salt=_SALT)


OwnPage = Annotated[Viewer, Depends(_require_own_page)]
"""The user of a request that was made by their own page, as the argument of a route."""
