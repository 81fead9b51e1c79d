"""Run the example campaign twice in a real Airflow against the sandbox, and check that nobody was texted twice."""

from __future__ import annotations

import http.client
import json
import re
import secrets
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from contextlib import ExitStack, closing
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow.parquet as pq

from demo.processes import environment, running

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

Check: TypeAlias = tuple[str, object, bool]
"""What is checked, its figure, and whether it holds."""
Run: TypeAlias = dict[str, Any]
"""A run's states by task, and its XComs by task and key."""

CHECKOUT = Path(__file__).parent.parent
FOLDER = CHECKOUT / ".demo"
HOME = FOLDER / "airflow"
TABLE = CHECKOUT / "dags" / "data" / "recipients.parquet"
DAG_ID = "example_sms_campaign"
CREDIT, CUSTOMERS, STAFF = "wait_for_credit", "text_customers", "text_staff"
"""The tasks of the DAG."""
COUNTS = ("accepted", "unknown", "not_sent", "invalid", "duplicate", "suppressed", "already_sent")
LITTLE_CREDIT, ENOUGH_CREDIT = 100, 5000
LARGEST_REQUEST = 100
LOOKS = 2
"""Balance requests of a run that sends nothing: one of the sensor, one of the plan."""
PATIENCE = 180.0
"""Seconds for each step."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells report it: 128 plus the number of SIGINT."""
_READY = re.compile(r"^sandbox ready at http://127\.0\.0\.1:(\d+)/v1$", re.MULTILINE)
_started = time.monotonic()


class DemoError(Exception):
    """The demonstration cannot continue; its words name the file with the details."""


def tell(words: str) -> None:
    """Print a step."""
    print(f"{time.monotonic() - _started:4.0f} s  {words}", flush=True)  # noqa: T201  # a command prints


class Processes(ExitStack):
    """The processes of the demonstration, which end with it."""

    def __init__(self) -> None:
        super().__init__()
        self.settings: dict[str, str] = {}

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start Python with arguments, its output in a log of this name."""
        env, log = environment(FOLDER / "home", self.settings), FOLDER / f"{name}.log"
        return self.enter_context(running([sys.executable, *arguments], env=env, cwd=CHECKOUT, log=log))

    def wait(self, name: str, process: subprocess.Popen[bytes], until: Callable[[], Any] | None = None) -> None:
        """Wait for the end of a process without an error, or for a condition while it runs."""
        give_up = time.monotonic() + PATIENCE
        while until is None or not until():
            if (status := process.poll()) is not None:
                if status or until is not None:
                    raise DemoError(f"{name} ended with status {status}; see {FOLDER / name}.log")
                return
            if time.monotonic() > give_up:
                raise DemoError(f"{name} took longer than {PATIENCE:.0f} seconds; see {FOLDER / name}.log")
            time.sleep(0.05)

    def test_dag(self, run: str, day: datetime, until: Callable[[], Any] | None = None) -> subprocess.Popen[bytes]:
        """Run the DAG, as a user would try it, until its end or a condition."""
        tell(f"{run}: airflow dags test {DAG_ID}")
        process = self.start(run, "-m", "airflow", "dags", "test", DAG_ID, day.isoformat())
        self.wait(run, process, until)
        return process

    def read_run(self, run: str, day: datetime) -> dict[str, Any]:
        """Return the states and XComs of a run, from Airflow's database."""
        target, log = FOLDER / f"{run}.json", f"{run}.read"
        self.wait(log, self.start(log, "-m", "demo.read_run", DAG_ID, day.isoformat(), str(target)))
        found: dict[str, Any] = json.loads(target.read_bytes())
        return found


class Service:
    """A sandbox in a process of its own."""

    def __init__(self, processes: Processes, token: str) -> None:
        self.witness = FOLDER / "witness.jsonl"
        log = FOLDER / "sandbox.log"
        arguments = ("--port=0", f"--token={token}", f"--balance={LITTLE_CREDIT}", f"--log={self.witness}")
        process = processes.start("sandbox", "-m", "airflow_provider_sms.sandbox", *arguments)
        processes.wait("sandbox", process, lambda: _READY.search(log.read_text()))
        self.port = int(_READY.findall(log.read_text())[0])

    def call(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        """Call a control path, and return the sandbox's state."""
        # http.client ignores proxies: the user's proxy could not reach this machine's loopback address.
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=10.0)) as connection:
            connection.request(method, f"/_sandbox/{path}", body)
            state: dict[str, Any] = json.load(connection.getresponse())
        return state

    def state(self) -> dict[str, Any]:
        """Return its counters and its balance."""
        return self.call("GET", "state")

    def witnessed(self) -> list[dict[str, Any]]:
        """Return the messages that it has taken."""
        return [json.loads(line) for line in self.witness.read_bytes().splitlines()]


def demonstrate(processes: Processes) -> Iterator[Check]:
    """Run the campaign twice, and yield the checks."""
    token = secrets.token_hex(16)
    service = Service(processes, token)
    tell(f"The sandbox runs at http://127.0.0.1:{service.port}, with a balance of {LITTLE_CREDIT}")
    connection = {"conn_type": "sms", "host": f"http://127.0.0.1:{service.port}/v1", "password": token}
    processes.settings = {
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SMS_DEFAULT": json.dumps(connection),
    }
    processes.wait("migrate", processes.start("migrate", "-m", "airflow", "db", "migrate"))
    # Both runs have the same day, and so the same campaign, even at midnight.
    day = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    process = processes.test_dag("run-1", day, lambda: service.state()["requests"])
    waited = not service.witnessed()
    yield "the sensor waits for credit, and nobody was texted", waited, waited
    service.call("PUT", "balance", json.dumps({"balance": ENOUGH_CREDIT}))
    tell(f"Topped up to {ENOUGH_CREDIT:,}")
    processes.wait("run-1", process)
    first, after, taken, held = processes.read_run("run-1", day), service.state(), service.witnessed(), ledger()
    yield from about_rows(first, taken)
    yield from about_money(first, after, taken, held)
    day += timedelta(minutes=1)
    processes.test_dag("run-2", day)
    second, looks = processes.read_run("run-2", day), service.state()["requests"] - after["requests"]
    yield from about_second_run(first, second, looks)
    yield "nobody was texted again", len(taken), (service.witnessed(), ledger()) == (taken, held)
    yield from about_privacy(token, taken)


def about_rows(run: Run, taken: Sequence[Any]) -> Iterator[Check]:
    """Check the first run's rows against the witness."""
    summary, customers = run["xcoms"][CUSTOMERS]["return_value"], _bulk(taken)
    yield "all tasks succeeded", len(run["states"]), {*run["states"].values()} == {"success"}
    counts, rows = {name: summary[name] for name in COUNTS}, pq.ParquetFile(TABLE).metadata.num_rows
    yield "rows of the table, each in one of the seven counts", counts, rows == summary["rows"] == sum(counts.values())
    yield "accepted, as many as the sandbox witnessed", summary["accepted"], summary["accepted"] == len(customers)
    most = max(Counter((each["destination"], each["content"]) for each in taken).values())
    yield "the same text to the same person, at most", most, most == 1
    fewest, posted = -(-summary["accepted"] // LARGEST_REQUEST), {each["request"] for each in customers}
    yield "requests, the fewest possible", summary["requests"], summary["requests"] == fewest == len(posted)


def about_money(run: Run, after: dict[str, Any], taken: Sequence[Any], held: Sequence[Any]) -> Iterator[Check]:
    """Check the first run's sums against the responses, the balance and the ledger."""
    summary, responses = run["xcoms"][CUSTOMERS]["return_value"], run["xcoms"][CUSTOMERS]["responses"]
    customers, group = _bulk(taken), run["xcoms"][STAFF]["return_value"]
    cost, parts = sum(_money(each["Cost"]) for each in responses), sum(each["Parts"] for each in responses)
    yield "cost, the sum of the responses", summary["cost"], _money(summary["cost"]) == cost
    yield "SMS parts, the sum of the responses", summary["parts"], summary["parts"] == parts
    left = ENOUGH_CREDIT - cost - _money(group["Cost"])
    yield "final balance, reduced by the cost and the group's", left, _money(after["balance"]) == left
    event_ids = {int(each["EventId"]) for each in responses}
    yield "event ids, exact", len(event_ids), event_ids == {each["event_id"] for each in customers}
    witnessed = [("bulk", "accepted", len(customers)), ("group", "accepted", len(taken) - len(customers))]
    yield "messages in the ledger, as witnessed", sum(messages for *_, messages in held), held == witnessed


def about_second_run(first: Run, second: Run, looks: int) -> Iterator[Check]:
    """Check that the second run of the campaign sent nothing."""
    before, again = (run["xcoms"][CUSTOMERS]["return_value"] for run in (first, second))
    yield "all tasks succeeded", len(second["states"]), {*second["states"].values()} == {"success"}
    yield "the same campaign", again["campaign"], again["campaign"] == before["campaign"]
    yield "already sent: all that run 1 accepted", again["already_sent"], again["already_sent"] == before["accepted"]
    yield "requests, all for the balance", looks, (looks, again["requests"]) == (LOOKS, 0)


def about_privacy(token: str, taken: Sequence[Any]) -> Iterator[Check]:
    """Check that neither the token nor a number is where others read."""
    files = [path for path in FOLDER.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    yield "files with the token", len(files), not files
    numbers = {number for each in taken for number in (each["destination"], "0" + each["destination"][2:])}
    logs = "".join((FOLDER / f"run-{number}.log").read_text() for number in (1, 2))
    shown = sum(digits in numbers for digits in re.findall(r"\d+", logs))
    yield "numbers of recipients in the logs", shown, shown == 0


def ledger() -> Sequence[tuple[str, str, int]]:
    """Return how many messages the ledger has of each kind, in which state."""
    query = "SELECT kind, state, SUM(messages) FROM sms_request GROUP BY kind, state ORDER BY kind, state"
    with closing(sqlite3.connect(HOME / "sms_ledger.db")) as connection:
        return connection.execute(query).fetchall()


def _bulk(taken: Sequence[Any]) -> list[Any]:
    return [each for each in taken if each["kind"] == "bulk"]


def _money(amount: float) -> Decimal:
    return Decimal(str(amount))


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a second signal must not interrupt the cleanup
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    """Run the demonstration, and return the exit status: 0 when every check passed."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _interrupt)
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "home").mkdir(parents=True)
    FOLDER.chmod(0o700)  # the ledger, the witness and Airflow's database hold numbers
    broken = 0
    try:
        with Processes() as processes:
            for words, figure, holds in demonstrate(processes):
                broken += not holds
                tell(f"  {'ok' if holds else 'NO'}  {words}: {figure}")
    except DemoError as error:
        tell(f"The demonstration failed: {error}")
        return 1
    except KeyboardInterrupt:
        tell("Interrupted: all started processes have been stopped")
        return INTERRUPTED
    tell(f"{f'{broken} checks failed' if broken else 'Every check passed'}. Logs and databases are in {FOLDER}")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
