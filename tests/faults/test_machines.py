from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool
from support.faults import partitions
from support.faults.rest import until
from support.machines import packages
from support.machines.__main__ import by_engine
from support.machines.engine import Engine
from support.machines.network import SERVICES, Relays, lacking
from support.machines.scenarios import SCENARIOS
from support.machines.stage import TASK_SECONDS, Played, Stage, unexcused
from support.pages import ROOT

TESTS = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])}

needs_servers = pytest.mark.skipif(packages.skips_tests(), reason="servers are not installed")
needs_namespaces = pytest.mark.skipif(bool(lacking()), reason="there can be no namespaces here")

CLIENT = """
import socket, sys, time
host, port = sys.argv[1:]
server = socket.create_connection((host, int(port)), timeout=5)
server.settimeout(1)
print(socket.gethostname(), flush=True)
while True:
    server.sendall(b"x")
    try:
        print("heard" if server.recv(1) else "closed", flush=True)
    except TimeoutError:
        print("silence", flush=True)
    time.sleep(0.1)
"""

INSIDE = """
import sys
from pathlib import Path
from support.machines.network import Namespaces
sys.path.insert(0, {here!r})
from test_machines import falls_silent
with Namespaces() as network:
    falls_silent(network, Path({folder!r}))
"""

STARTED = """
import sys, time
from pathlib import Path
from support.machines.network import Relays
from support.machines.services import running_services
with Relays() as network, running_services(network, Path(sys.argv[1]), standby=True, pooler=True) as services:
    print(services.database.folder.parent, flush=True)
    time.sleep(600)
"""


def falls_silent(network, folder):
    """Check that a machine reaches a service, hears nothing while its link is cut, and is heard again after."""
    with socket.create_server(network.place("broker")) as listener:
        machine = network.machine("worker-1", folder / "worker-1")
        host, port = machine.place("broker")
        output = folder / "printed"
        process = machine.run([sys.executable, "-c", CLIENT, host, str(port)], dict(os.environ), output)
        try:
            server, _ = listener.accept()
            with server:
                server.settimeout(20)
                _echo(server)
                machine.cut("database", "api")
                _echo(server)
                machine.cut("broker")
                until(lambda: "silence" in output.read_text(), seconds=20, what="the machine hears nothing")
                heard = output.read_text().count("heard")
                machine.mend("broker")
                until(lambda: _echo(server) and output.read_text().count("heard") > heard, seconds=20, what="it hears")
        finally:
            process.kill()
            process.wait()
        assert output.read_text().startswith("worker-1\n")
        assert "closed" not in output.read_text()


def _echo(server):
    server.sendall(server.recv(1))
    return True


def test_a_relay_that_is_cut_is_silent_and_is_heard_again_once_mended(tmp_path):
    """Without namespaces, a cut link passes nothing, breaks no connection, and loses nothing."""
    with Relays() as network:
        falls_silent(network, tmp_path)


@needs_namespaces
def test_a_cable_that_is_cut_is_silent_and_is_heard_again_once_mended(tmp_path):
    """With namespaces, a machine has its own host name, and a cut passes nothing, in a connection that stays."""
    code = INSIDE.format(here=str(Path(__file__).parent), folder=str(tmp_path))
    ran = subprocess.run(
        ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", code],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@needs_servers
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_services_that_are_interrupted_leave_no_process_and_no_folder(tmp_path, number):
    """Ctrl-C, and what a job is stopped with, end every server and remove its files."""
    handler = "import signal; signal.signal(signal.SIGTERM, lambda *_: exit(1))\n"
    handler += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", handler + STARTED, str(tmp_path)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
    )
    folder = process.stdout.readline().strip()
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    process.wait(60)
    process.stdout.close()
    assert (Path(folder).exists(), folder != "") == (False, True)
    assert _living(children) == []


def _living(processes):
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_what_a_killed_process_leaves_lies_in_its_home(tmp_path):
    """Temporary files, too, go with the folder of the engine."""
    with Relays() as network:
        engine = Engine(tmp_path, network, SimpleNamespace(pooler=None), {})
        environment = engine.environment(tmp_path / "middle", network.place)
    code = "import tempfile; print(tempfile.mkdtemp())"
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert Path(ran.stdout.strip()).parent == tmp_path / "middle"


def test_every_scenario_has_a_name_of_its_own():
    """A scenario is chosen by its id, which is also its campaign and DAG."""
    ids = [each.id for each in SCENARIOS]
    assert len(set(ids)) == len(ids) > len(SERVICES)


def test_the_scenario_of_the_example_has_its_id():
    """It is found by the id of its DAG, which stands in the example."""
    assert [each.id for each in SCENARIOS if each.example] == [partitions.DAG_ID]


def test_each_engine_is_started_once():
    """Scenarios that need the same engine follow each other, wherever they stand; none is left out or played twice."""
    engines = by_engine(SCENARIOS)
    assert all(one != other for (one, _), (other, _) in combinations(engines, 2))
    assert all(each.engine == services for services, same in engines for each in same)
    assert sorted(each.id for _, same in engines for each in same) == sorted(each.id for each in SCENARIOS)


RECEIVED = "2026-11-25T09:00:0{}.1Z [info     ] Task execute_workload[8c1f] received [celery.worker.strategy]\n"
ENDED = "2026-11-25T09:00:0{}.1Z [info     ] Task execute_workload[8c1f] {} in 3.2s: None [celery.app.trace]\n"


@pytest.mark.parametrize(
    ("outputs", "has_met"),
    [
        ([RECEIVED.format(1) + ENDED.format(5, "succeeded"), RECEIVED.format(4)], True),
        ([RECEIVED.format(4) + ENDED.format(6, "raised"), RECEIVED.format(1) + ENDED.format(5, "succeeded")], True),
        ([RECEIVED.format(1), RECEIVED.format(4)], True),
        ([RECEIVED.format(1) + ENDED.format(5, "succeeded"), RECEIVED.format(6)], False),
        ([RECEIVED.format(1) + ENDED.format(5, "succeeded"), RECEIVED.format(3).replace("8c1f", "9d20")], False),
        (["celery@worker-1 ready.\n", ""], False),
    ],
)
def test_a_scenario_of_copies_needs_a_copy_that_met_its_task(tmp_path, outputs, has_met):
    """A copy that a worker receives when its task has ended tries nothing."""
    workers = {}
    for number, output in enumerate(outputs):
        (tmp_path / str(number)).write_text(output)
        workers[number] = SimpleNamespace(output=tmp_path / str(number))
    stage = Stage(SimpleNamespace(workers=workers, services=None), SimpleNamespace(name="copies"))
    if has_met:
        stage.require_copies()
    else:
        with pytest.raises(RuntimeError, match="no worker received a copy"):
            stage.require_copies()


@pytest.fixture
def ledger():
    """A ledger in which one task began at 100, and had a request in flight from 110 to 120."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE sms_attempt (id, dag_id, started_at)")
        connection.exec_driver_sql("CREATE TABLE sms_request (attempt_id, state, claimed_at, finished_at)")
        connection.exec_driver_sql("INSERT INTO sms_attempt VALUES (1, 'played', 100), (2, 'another', 900)")
        connection.exec_driver_sql("INSERT INTO sms_request VALUES (1, 'accepted', 110, 120), (2, 'accepted', 1, 999)")
    yield engine
    engine.dispose()


@pytest.mark.parametrize(
    ("require", "held", "missed"),
    [(Stage.require_in_flight, 115, 105), (Stage.require_in_flight, 111, 121), (Stage.require_begun_later, 99, 101)],
)
def test_a_scenario_needs_something_to_disturb(ledger, require, held, missed):
    """A session that no request used, or a queue that no task waited in, tries nothing."""
    stage = Stage(SimpleNamespace(services=None), SimpleNamespace(name="played", ledger=ledger))
    stage.began = held
    require(stage)
    stage.began = missed
    with pytest.raises(RuntimeError, match="the disturbance"):
        require(stage)


def test_unknown_scenarios_are_named(capsys):
    """A scenario that does not exist is an error that names it."""
    from support.machines.__main__ import main

    with pytest.raises(SystemExit):
        main(["no-such-thing"])
    assert "no-such-thing" in capsys.readouterr().err


def test_the_packages_that_are_installed_are_those_that_are_needed():
    """Where one of them is left out, all tests on several machines are skipped; Debian always has util-linux."""
    needed = {f"{command}:{package}" for command, package in packages.COMMANDS.items() if package != "util-linux"}
    in_ci = re.search(r'^servers="(.*)"$', (ROOT / ".ci" / "rest").read_text(), re.MULTILINE)[1]
    told = re.search(r"`apt-get install (redis-server .*)`", (ROOT / "CONTRIBUTING.md").read_text())[1]
    assert set(in_ci.split()) == needed
    assert set(told.split()) == {each.partition(":")[2] for each in needed}


def test_what_cannot_be_installed_is_named(monkeypatch, capsys):
    """Where a server is missing and may not be installed, the command says which, and starts nothing."""
    from support.machines import __main__

    monkeypatch.setattr(__main__, "missing", lambda: ["redis-server"])
    monkeypatch.setattr(__main__, "install", lambda packages: packages)
    with pytest.raises(SystemExit):
        __main__.main(["worker_killed"])
    assert "could not be installed: redis-server" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "is_broken"),
    [
        ({}, False),
        ({"unknown": 50}, False),
        ({"unknown": 51}, True),
        ({"twice": 1}, True),
        ({"lost": 1}, True),
        ({"seconds": (20.0, None)}, True),
        ({"seconds": (20.0, TASK_SECONDS + 1.0)}, True),
        ({"unexcused": 1}, True),
        ({"unexcused": 1, "unknown": 50}, True),
        ({"quiet": None}, True),
    ],
)
def test_a_scenario_has_failed_when_somebody_is_texted_twice_or_lost_or_a_task_hangs(changed, is_broken):
    """Unknown people are no failure up to what the dead processes had in flight; a task that fails without any is."""
    fine = {"twice": 0, "lost": 0, "unknown": 0, "seconds": (20.0, 30.0), "quiet": 31.0, "unexcused": 0}
    played = Played(scenario=SCENARIOS[0], people=100, allowed=50, shown="2 success", **{**fine, **changed})
    assert played.is_broken == is_broken


def test_unknown_people_excuse_the_tasks_whose_tables_they_are_in():
    """A task that fails though everybody in its table is accounted for has no excuse in the people of another one."""
    tables = [("ann", "bob"), ("bob", "cyd"), ("dan", "eve"), ("fay",)]
    states = {"ann": "accepted", "bob": "unknown", "cyd": "accepted", "dan": "accepted", "eve": "not_sent"}
    campaign = SimpleNamespace(states=lambda: states, keys_of=tables.__getitem__)
    ends = ["failed", "failed", "failed", "success"]
    instances = [{"map_index": index, "state": state} for index, state in enumerate(ends)]
    assert unexcused(instances, campaign) == 1
    assert unexcused(instances[:2], campaign) == 0
    assert unexcused([{"map_index": 3, "state": "upstream_failed"}], campaign) == 1
