"""Airflow's REST API, of any version, as far as the tests drive a real Airflow with it."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from http import HTTPStatus

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

API = "/api/v2"
ENDED = ("success", "failed")
READY_SECONDS = 600.0
RUN_SECONDS = 600.0
PATIENCE = 60.0
ANSWER_SECONDS = 180.0
"""Seconds for the API to answer, which a busy machine may well need."""
POLL_SECONDS = 0.1
API_SECONDS = 0.5
"""Seconds between two calls of the API, each of which costs a busy machine 10 milliseconds."""


def until(condition, *, seconds, what, every=POLL_SECONDS):
    """Wait until something holds, and return it.

    :param condition: function that is called until its result is true; the API may take too long to answer it.
    :param what: for the error.
    :param every: seconds between two calls.
    """
    end = time.monotonic() + seconds
    while True:
        with suppress(requests.Timeout):
            if found := condition():
                return found
        if time.monotonic() > end:
            raise TimeoutError(f"after {seconds:.0f} s still waiting until {what}")
        time.sleep(every)


class RestApi:
    """The API of a running Airflow.

    :param url: URL of the web server.
    :param home: the Airflow's AIRFLOW_HOME, whose first user signs in.
    """

    def __init__(self, url, home):
        self.url = url
        self.home = home
        self._session = requests.Session()
        self._session.trust_env = False
        # Where much happens at once, Airflow's SQLite database is locked for longer than its API waits for it.
        again = Retry(
            total=None,
            connect=0,
            read=False,  # so that a timeout is raised as one
            redirect=0,
            status=5,
            status_forcelist=(500,),
            allowed_methods=None,
            backoff_factor=1,
            raise_on_status=False,
        )
        self._session.mount(url, HTTPAdapter(max_retries=again))

    def close(self):
        """Close its connections."""
        self._session.close()

    def health(self):
        """Return the health of scheduler, triggerer and database."""
        return self.call("GET", "/monitor/health")

    def call(self, method, path, **body):
        """Send a request to the API, and return the response."""
        answer = self._ask(method, self.url + API + path, json=body or None)
        answer.raise_for_status()
        return answer.json()

    def page(self, path):
        """Return the text of one of the package's pages, whatever its status."""
        return self._ask("GET", f"{self.url}/sms{path}").text

    def _ask(self, method, url, **what):
        if "Authorization" not in self._session.headers:
            self._session.headers["Authorization"] = f"Bearer {self._token()}"
        return self._session.request(method, url, timeout=ANSWER_SECONDS, **what)

    def _token(self):
        people = self.home / "simple_auth_manager_passwords.json.generated"
        if people.is_file():
            name, password = next(iter(json.loads(people.read_text()).items()))
            known = {"username": name, "password": password}
            answer = self._session.post(f"{self.url}/auth/token", json=known, timeout=ANSWER_SECONDS)
        else:
            answer = self._session.get(f"{self.url}/auth/token", timeout=ANSWER_SECONDS)
        answer.raise_for_status()
        return answer.json()["access_token"]

    def has(self, dag_id):
        """Whether the DAG has been read."""
        with suppress(requests.HTTPError):
            return self.call("GET", f"/dags/{dag_id}")["dag_id"] == dag_id
        return False

    def trigger(self, dag_id, run_id, **conf):
        """Start a run.

        :param conf: params of the DAG.
        """
        until(lambda: self.has(dag_id), seconds=READY_SECONDS, what=f"{dag_id} has been read", every=API_SECONDS)
        self.call("POST", f"/dags/{dag_id}/dagRuns", dag_run_id=run_id, conf=conf, logical_date=None)

    def await_end(self, dag_id, run_id):
        """Wait until a run has ended, and return its state."""

        def ended():
            state = self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}")["state"]
            return state if state in ENDED else None

        return until(ended, seconds=RUN_SECONDS, what=f"the run of {dag_id} has ended", every=API_SECONDS)

    def runs(self, dag_id):
        """Return the runs of a DAG."""
        return self.call("GET", f"/dags/{dag_id}/dagRuns")["dag_runs"]

    def instances(self, dag_id, run_id):
        """Return the task instances of a run."""
        return self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")["task_instances"]

    def clear(self, dag_id, run_id):
        """Clear every task of a run, whatever its state."""
        self.call("POST", f"/dags/{dag_id}/clearTaskInstances", dag_run_id=run_id, dry_run=False, only_failed=False)

    def mark(self, dag_id, run_id, task_id, state):
        """Return a task another state, as a person does in the web page."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        self.call("PATCH", path, new_state=state)

    def answer(self, dag_id, run_id, task_id, option):
        """Answer what a task asks, as a person does in the required actions; it may be answered already."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"
        try:
            self.call("PATCH", path, chosen_options=[option], params_input={})
        except requests.HTTPError as error:
            if error.response.status_code != HTTPStatus.CONFLICT:
                raise

    def summaries(self, dag_id, run_id):
        """Return what the last try of each task instance of a run has pushed as its result, with its map index."""
        for instance in self.instances(dag_id, run_id):
            task_id, map_index = instance["task_id"], instance["map_index"]
            yield map_index, self.xcom(dag_id, run_id, task_id, "return_value", map_index)

    def xcom(self, dag_id, run_id, task_id, key, map_index=-1):
        """Return what the last try of a task instance has pushed."""
        entry = f"{task_id}/xcomEntries/{key}?map_index={map_index}&stringify=false"
        return self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{entry}")["value"]
