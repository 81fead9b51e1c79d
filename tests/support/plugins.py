"""The pages, served like Airflow's web server does, for signed-in users."""

from __future__ import annotations

import inspect

from airflow.api_fastapi.app import get_auth_manager, init_auth_manager, purge_cached_app
from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi import FastAPI
from starlette.testclient import TestClient

from airflow_provider_sms.plugins import PREFIX
from airflow_provider_sms.plugins.sms import SmsPlugin

ROLES = {"vic": "viewer", "ed": "user", "ann": "admin", "nemo": "user", "al": "user", "bo": "user", "abe": "user"}
"""A viewer, users who may edit DAGs, and an admin."""
TEAMS = {"al": ["a"], "bo": ["b"], "abe": ["a", "b"]}
"""The teams of users, in a multi-team deployment."""
HAS_TEAMS = "teams" in inspect.signature(SimpleAuthManagerUser.__init__).parameters
"""Whether this Airflow has multi-team deployments."""


class Site:
    """Airflow's web server with the plugin's application only."""

    def __enter__(self):
        purge_cached_app()
        (mounted,) = SmsPlugin().fastapi_apps
        self._root = FastAPI()
        self._root.mount(mounted["url_prefix"], mounted["app"])
        init_auth_manager(self._root)
        self._clients = []
        return self

    def __exit__(self, *error):
        for client in self._clients:
            client.close()
        purge_cached_app()

    def client(self, name=None, **headers):
        """Return the client of a user; without a name, the client is not signed in."""
        client = TestClient(self._root, base_url="http://airflow.test", headers=headers, follow_redirects=False)
        if name is not None:
            teams = {"teams": TEAMS.get(name)} if HAS_TEAMS else {}
            user = SimpleAuthManagerUser(username=name, role=ROLES[name], **teams)
            client.cookies.set(COOKIE_NAME_JWT_TOKEN, get_auth_manager().generate_jwt(user))
        self._clients.append(client)
        return client


class Person:
    """A user of the pages.

    :param name: one of :data:`ROLES`; None means not signed in.
    """

    def __init__(self, site, name):
        self._client = site.client(name)

    def get(self, path, **headers):
        """Request a page."""
        return self._client.get(PREFIX + path, headers={"accept": "text/html", **headers})

    def post(self, path, body=None, **headers):
        """Submit an action like the page."""
        headers = {"x-sms-page": "1", "sec-fetch-site": "same-origin", **headers}
        return self._client.post(PREFIX + path, json=body or {}, headers=headers)
