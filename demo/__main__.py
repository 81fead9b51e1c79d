"""Run the example campaign twice in a real Airflow against the sandbox, and check that nobody was texted twice."""

from __future__ import annotations

import http.client
import json
import re
import secrets
import shutil
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

from demo.processes import INTERRUPTED, ProcessError, answering, interrupt_once, python, wait

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Sequence

Check: TypeAlias = tuple[str, object, bool]
"""What is checked, its figure, and whether it holds."""

CHECKOUT = Path(__file__).parent.parent
FOLDER = CHECKOUT / ".demo"
HOME = FOLDER / "airflow"
TABLE = CHECKOUT / "dags" / "data" / "recipients.parquet"
DAG_ID = "example_sms_campaign"
CUSTOMERS, STAFF = "text_customers", "text_staff"
"""Its tasks that send."""
COUNTS = ("accepted", "unknown", "not_sent", "invalid", "duplicate", "suppressed", "already_sent")
LITTLE_CREDIT, ENOUGH_CREDIT = 100, 5000
LARGEST_REQUEST = 100
LOOKS = 2
"""Balance requests of a run that sends nothing: one of the sensor, one of the plan."""
PATIENCE = 180.0
"""Seconds for each step."""
_READY = re.compile(r"^sandbox ready at http://127\.0\.0\.1:(\d+)/v1$", re.MULTILINE)
_started = time.monotonic()


def tell(words: str) -> None:
    """Print a step."""
    print(f"{time.monotonic() - _started:4.0f} s  {words}", flush=True)  # noqa: T201  # a command prints


class Demo(ExitStack):
    """The sandbox and the Airflow of the demonstration, whose processes end with it."""

    def __init__(self) -> None:
        super().__init__()
        self.token = secrets.token_hex(16)
        self._witness, log = FOLDER / "witness.jsonl", FOLDER / "sandbox.log"
        arguments = ("--port=0", f"--token={self.token}", f"--balance={LITTLE_CREDIT}", f"--log={self._witness}")
        self._settings: dict[str, str] = {}
        self.run("sandbox", "airflow_provider_sms.sandbox", *arguments, until=lambda: _READY.search(log.read_text()))
        self._port = int(_READY.findall(log.read_text())[0])
        url = f"http://127.0.0.1:{self._port}/v1"
        tell(f"The sandbox runs at {url}, with a balance of {LITTLE_CREDIT}")
        self._settings = {
            "AIRFLOW_HOME": str(HOME),
            "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW_CONN_SMS_DEFAULT": json.dumps({"conn_type": "sms", "host": url, "password": self.token}),
        }
        self.run("migrate", "airflow", "db", "migrate")

    def run(self, name: str, *module: str, until: Callable[[], Any] | None = None) -> subprocess.Popen[bytes]:
        """Run a module with arguments, its output in a log of this name, until its end or a condition."""
        log = FOLDER / f"{name}.log"
        process = self.enter_context(python("-m", *module, home=FOLDER / "home", log=log, settings=self._settings))
        wait(process, log, seconds=PATIENCE, until=until)
        return process

    def test_dag(self, run: str, day: datetime, until: Callable[[], Any] | None = None) -> subprocess.Popen[bytes]:
        """Run the DAG, as a user would try it, until its end or a condition."""
        tell(f"{run}: airflow dags test {DAG_ID}")
        return self.run(run, "airflow", "dags", "test", DAG_ID, day.isoformat(), until=until)

    def read_run(self, day: datetime) -> dict[str, Any]:
        """Return a run's states by task, and its XComs by task and key."""
        job, home = [DAG_ID, day.isoformat()], FOLDER / "home"
        with answering("demo.read_run", job, home=home, settings=self._settings) as found:
            return dict(found)

    def sandbox(self, method: str = "GET", path: str = "state", body: str | None = None) -> dict[str, Any]:
        """Call a control path of the sandbox, and return its counters and its balance."""
        # http.client ignores proxies: the user's proxy could not reach this machine's loopback address.
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=10.0)) as connection:
            connection.request(method, f"/_sandbox/{path}", body)
            return dict(json.load(connection.getresponse()))

    def witnessed(self) -> list[dict[str, Any]]:
        """Return the messages that the sandbox has taken."""
        return [json.loads(line) for line in self._witness.read_bytes().splitlines()]


def demonstrate(demo: Demo) -> Iterator[Check]:
    """Run the campaign twice, and yield the checks."""
    # Both runs have the same day, and so the same campaign, even at midnight.
    day = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    process = demo.test_dag("run-1", day, lambda: demo.sandbox()["requests"])
    waited = not demo.witnessed()
    yield "the sensor waits for credit, and nobody was texted", waited, waited
    demo.sandbox("PUT", "balance", json.dumps({"balance": ENOUGH_CREDIT}))
    tell(f"Topped up to {ENOUGH_CREDIT:,}")
    wait(process, FOLDER / "run-1.log", seconds=PATIENCE)
    first, after, taken, held = demo.read_run(day), demo.sandbox(), demo.witnessed(), ledger()
    yield from about_rows(first, taken)
    yield from about_money(first, after, taken, held)
    day += timedelta(minutes=1)
    demo.test_dag("run-2", day)
    second, looks = demo.read_run(day), demo.sandbox()["requests"] - after["requests"]
    yield from about_second_run(first, second, looks)
    yield "nobody was texted again", len(taken), (demo.witnessed(), ledger()) == (taken, held)
    yield from about_privacy(demo.token, taken)


def about_rows(run: dict[str, Any], taken: Sequence[Any]) -> Iterator[Check]:
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


def about_money(
    run: dict[str, Any], after: dict[str, Any], taken: Sequence[Any], held: Sequence[Any]
) -> Iterator[Check]:
    """Check the first run's sums against the responses, the balance and the ledger."""
    summary, responses = run["xcoms"][CUSTOMERS]["return_value"], run["xcoms"][CUSTOMERS]["responses"]
    customers, group = _bulk(taken), run["xcoms"][STAFF]["return_value"]
    cost = sum(_money(each["Cost"]) for each in responses)
    yield "cost, the sum of the responses", summary["cost"], _money(summary["cost"]) == cost
    left = ENOUGH_CREDIT - cost - _money(group["Cost"])
    yield "final balance, reduced by the cost and the group's", left, _money(after["balance"]) == left
    witnessed = [("bulk", "accepted", len(customers)), ("group", "accepted", len(taken) - len(customers))]
    yield "messages in the ledger, as witnessed", sum(messages for *_, messages in held), held == witnessed


def about_second_run(first: dict[str, Any], second: dict[str, Any], looks: int) -> Iterator[Check]:
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


def main() -> int:
    """Run the demonstration, and return the exit status: 0 when every check passed."""
    interrupt_once()
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "home").mkdir(parents=True)
    FOLDER.chmod(0o700)  # the ledger, the witness and Airflow's database hold numbers
    broken = 0
    try:
        with Demo() as demo:
            for words, figure, holds in demonstrate(demo):
                broken += not holds
                tell(f"  {'ok' if holds else 'NO'}  {words}: {figure}")
    except ProcessError as error:
        tell(f"The demonstration failed: {error}")
        return 1
    except KeyboardInterrupt:
        tell("Interrupted: all started processes have been stopped")
        return INTERRUPTED
    tell(f"{f'{broken} checks failed' if broken else 'Every check passed'}. Logs and databases are in {FOLDER}")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
