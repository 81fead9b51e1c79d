"""The pages, served as Airflow's web server serves them, to people whom it knows."""

from __future__ import annotations

import re

from airflow.api_fastapi.app import get_auth_manager, init_auth_manager, purge_cached_app
from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi import FastAPI
from starlette.testclient import TestClient

from airflow_provider_sms.plugins.sms import PREFIX, SmsPlugin

ROLES = {"vic": "viewer", "ed": "user", "ann": "admin"}
"""A viewer, somebody who may edit DAGs, and an admin."""


class Site:
    """The web server with the plugin's application, and nothing else of Airflow's."""

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
        """Give the browser of somebody; of nobody whom Airflow knows where there is no name."""
        client = TestClient(self._root, base_url="http://airflow.test", headers=headers, follow_redirects=False)
        if name is not None:
            user = SimpleAuthManagerUser(username=name, role=ROLES[name])
            client.cookies.set(COOKIE_NAME_JWT_TOKEN, get_auth_manager().generate_jwt(user))
        self._clients.append(client)
        return client


class Person:
    """Somebody at the pages.

    :param name: one of :data:`ROLES`; None: nobody whom Airflow knows.
    """

    def __init__(self, site, name):
        self._client = site.client(name)

    def get(self, path, **headers):
        """Look at a page."""
        return self._client.get(PREFIX + path, headers={"accept": "text/html", **headers})

    def token(self, path="/look-up"):
        """Give the token of the person's page; empty where they cannot have it."""
        found = re.search(r'name="sms-token" content="([^"]+)"', self.get(path).text)
        return found[1] if found else ""

    def post(self, path, body=None, *, token=None, **headers):
        """Do something as the page does it.

        :param token: None: that of the person's own page.
        """
        headers = {"x-sms-token": self.token() if token is None else token, "sec-fetch-site": "same-origin", **headers}
        return self._client.post(PREFIX + path, json=body or {}, headers=headers)
