"""The pages, served like Airflow's web server does, for signed-in users."""

from __future__ import annotations

import inspect
from contextlib import ExitStack, closing, contextmanager

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


class Person(TestClient):
    """A user of the pages: one of :data:`ROLES`, or None, who has not signed in."""

    def __init__(self, app, name):
        super().__init__(app, base_url=f"http://airflow.test{PREFIX}", follow_redirects=False)
        if name is not None:
            teams = {"teams": TEAMS.get(name)} if HAS_TEAMS else {}
            user = SimpleAuthManagerUser(username=name, role=ROLES[name], **teams)
            self.cookies.set(COOKIE_NAME_JWT_TOKEN, get_auth_manager().generate_jwt(user))

    def get(self, path):
        """Request a page like a browser."""
        return super().get(path, headers={"accept": "text/html"})

    def post(self, path, body=None, **headers):
        """Submit an action like the page."""
        headers = {"x-sms-page": "1", "sec-fetch-site": "same-origin", **headers}
        return super().post(path, json=body or {}, headers=headers)


@contextmanager
def mounted_pages():
    """Mount the pages like Airflow's web server does, and yield a function that returns a :class:`Person` by name."""
    purge_cached_app()
    (mounted,) = SmsPlugin().fastapi_apps
    root = FastAPI()
    root.mount(mounted["url_prefix"], mounted["app"])
    init_auth_manager(root)
    with ExitStack() as people:
        yield lambda name: people.enter_context(closing(Person(root, name)))
    purge_cached_app()
