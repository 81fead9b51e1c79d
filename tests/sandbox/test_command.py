from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys

import orjson
import pytest
import requests

NUMBER = "27821234567"
HEADERS = {"Authorization": "Bearer t", "Accept": "application/json"}
BODY = {"Messages": [{"Destination": NUMBER, "Content": "Hello"}]}


@contextlib.contextmanager
def command(*arguments):
    """Run the command, and yield the process and its base URL once it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "airflow_provider_sms.sandbox", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            line = process.stdout.readline()
            assert re.fullmatch(r"sandbox ready at http://127\.0\.0\.1:\d+/v1\n", line), process.stderr.read()
            yield process, line.split()[-1]
        finally:
            process.kill()


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_stops_it_at_once(stop, tmp_path):
    """It ends with no output, even with an open connection and a pending response; the witness outlives even a kill."""
    log = tmp_path / "witness.jsonl"
    with (
        command("--token", "t", "--latency", "60", "--post-paid", "--log", str(log)) as (process, base),
        requests.Session() as session,
    ):
        assert session.get(f"{base}/Balance", headers=HEADERS, timeout=10).json() == {"Balance": 1000000}
        with pytest.raises(requests.ReadTimeout):
            session.post(f"{base}/bulkmessages", headers=HEADERS, json=BODY, timeout=0.2)
        session.get(f"{base}/Balance", headers=HEADERS, timeout=10)
        process.send_signal(stop)
        assert process.wait(10) == (-stop if stop == signal.SIGKILL else 0)
        assert (process.stdout.read(), process.stderr.read()) == ("", "")
    assert orjson.loads(log.read_bytes())["destination"] == NUMBER


def test_every_option_is_applied():
    """Balance, groups, opt-outs and client credentials of the command line reach the service."""
    options = "--token t --balance 2.5 --group one two three --opted-out 27821111111 27822222222"
    client = "--client-id me --client-secret secret"
    with command(*options.split(), *client.split()) as (_, base):
        balance = requests.get(f"{base}/Balance", headers=HEADERS, timeout=10).json()
        token = requests.get(f"{base}/Authentication", auth=("me", "secret"), timeout=10).json()["token"]
        opted_out = {"Messages": [{"Destination": n, "Content": "Hello"} for n in ("27821111111", "27822222222")]}
        report = requests.post(f"{base}/bulkmessages", headers=HEADERS, json=opted_out, timeout=10).json()
        to_groups = {"Message": "Hello", "Groups": ["one", "two", "three"], "SendOptions": {"TestMode": True}}
        fetched = {**HEADERS, "Authorization": f"Bearer {token}"}
        group = requests.post(f"{base}/groupmessages", headers=fetched, json=to_groups, timeout=10).json()
    assert (balance, report["ErrorReport"]["OptedOuts"], group["Messages"]) == ({"Balance": 2.5}, 2, 15)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--token", "t", "--balance", "much"], "balance"),
        ([], "token"),
        (["--token", "t", "--client-id", "me"], "belong together"),
    ],
)
def test_wrong_arguments_are_explained(arguments, reason):
    """Invalid arguments end with status 2 and an error that names the argument."""
    ended = run("-m", "airflow_provider_sms.sandbox", *arguments)
    assert ended.returncode == 2
    assert reason in ended.stderr


def test_a_port_in_use_is_explained():
    """A port in use ends with status 1 and one line, not with a traceback."""
    with command("--token", "t") as (_, base):
        ended = run("-m", "airflow_provider_sms.sandbox", "--token", "t", "--port", re.search(r":(\d+)/", base)[1])
    assert (ended.returncode, ended.stdout, len(ended.stderr.splitlines())) == (1, "", 1)
    assert ended.stderr.startswith("the sandbox cannot start: ")
