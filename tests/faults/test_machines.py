from __future__ import annotations

import os
import py_compile
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from datetime import date
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool
from support.faults import partitions
from support.faults.rest import until
from support.machines import packages, page, versions
from support.machines.__main__ import by_engine
from support.machines.engine import Engine
from support.machines.network import SERVICES, Relays, lacking
from support.machines.scenarios import SCENARIOS
from support.machines.stage import TASK_SECONDS, Played, Scenario, Stage, unexcused
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
with Relays() as network, running_services(network, Path(sys.argv[1]), standby="asynchronous", pooler=True) as services:
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


def test_relays_can_delay_and_cut(tmp_path):
    """A relay holds back what it forwards, and ends connections, when told to."""
    with Relays() as network, socket.create_server(network.place("api")) as listener:
        machine = network.machine("worker-1", tmp_path / "worker-1")
        with socket.create_connection(machine.place("api"), timeout=20) as client:
            server, _ = listener.accept()
            with server:
                machine.delay(0.2, "api")
                before = time.monotonic()
                client.sendall(b"x")
                assert server.recv(1) == b"x"
                assert time.monotonic() - before > 0.2
                machine.drop("api")
                assert client.recv(1) == b""


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
        connection.exec_driver_sql("CREATE TABLE sms_claimant (id, dag_id, started_at)")
        connection.exec_driver_sql("CREATE TABLE sms_request (claimant_id, state, claimed_at, finished_at)")
        connection.exec_driver_sql("INSERT INTO sms_claimant VALUES (1, 'played', 100), (2, 'another', 900)")
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


def test_the_version_before_has_todays_ledger(tmp_path, monkeypatch):
    """Its code differs from today's, and its ledger does not; one with another ledger is refused."""
    monkeypatch.delenv(versions.CHOSEN, raising=False)
    if not versions.has_history():
        pytest.skip("the history is not here")
    package = Path(versions.before(tmp_path)["PYTHONPATH"]) / versions.PACKAGE
    with pytest.raises(RuntimeError, match="no task sent with the version before"):
        versions.require_used(tmp_path)
    py_compile.compile(str(package / "sending" / "sender.py"))
    versions.require_used(tmp_path)
    assert "resent_by" not in (package / "ledger" / "request_queries.py").read_text()
    monkeypatch.setattr(versions, "SCHEMA_VERSION", 1000)
    with pytest.raises(RuntimeError, match="not 1000: set BEFORE to another"):
        versions.before(tmp_path)


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/several-machines.md"])
def test_pages_name_the_version_before(name):
    """Whoever reads of the scenario finds the revision that it runs."""
    told = re.findall(r"the package of\s+`([0-9a-f]+)`", (ROOT / name).read_text())
    assert told == [versions.FIRST[:7]]


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
        __main__.main(["nothing"])
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
        ({"unknown": 50, "left": 50}, False),
        ({"refused": "a file does not fit"}, True),
    ],
)
def test_a_scenario_has_failed_when_somebody_is_texted_twice_or_lost_or_a_task_hangs(changed, is_broken):
    """Unknown people are no failure up to what the dead processes had in flight; a task that fails without any is."""
    fine = {"twice": 0, "lost": 0, "unknown": 0, "seconds": (20.0, 30.0), "quiet": 31.0, "unexcused": 0, "left": 0}
    played = Played(scenario=SCENARIOS[0], people=100, allowed=50, shown="2 success", **{**fine, **changed})
    assert played.is_broken == is_broken


@pytest.mark.parametrize("recovers", [True, False])
def test_where_only_the_ledger_is_out_of_reach_nobody_stays_unknown(recovers):
    """The responses lie in recovery files, and a person records them; other scenarios may leave unknown people."""
    scenario = Scenario("a cut", play=print, recovers=recovers)
    cells = {"people": 100, "twice": 0, "lost": 0, "unknown": 50, "allowed": 50, "unexcused": 0, "shown": ""}
    assert not Played(scenario, seconds=(20.0,), quiet=21.0, left=0, **cells).is_broken
    assert Played(scenario, seconds=(20.0,), quiet=21.0, left=1, **cells).is_broken == recovers
    assert {each.id for each in SCENARIOS if each.recovers} == {"loses_database", "loses_all_but_messaging"}


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


DAY = date(2027, 1, 31)
NAMES = [each.name for each in SCENARIOS]


def row_of(name, **changed):
    """Return the cells of a scenario in which all went well."""
    cells = {"people": "100", "twice": "0", "lost": "0", "unknown": "0", "task": "20", "process": "21"}
    return [name, *{**cells, **changed}.values(), "2 success (attempt 1)"]


def rows_on(text):
    begin = text.index(page.HEAD) + len(page.HEAD)
    return text[begin : text.index("\n\n", begin)].splitlines()


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the page, which the command takes for it."""
    copy = tmp_path / "page.md"
    copy.write_text(page.PAGE.read_text())
    monkeypatch.setattr(page, "PAGE", copy)
    return copy


def test_rows_of_several_runs_add_up(copy, tmp_path, capsys):
    """In the order of the scenarios; one that was played again has its last row; what is left to play is named."""
    from support.machines.__main__ import main

    before, file = copy.read_text(), tmp_path / "rows"
    runs = [[row_of(NAMES[2]), row_of(NAMES[0], unknown="7")], [row_of(NAMES[0])]]
    for run in runs:
        with file.open("a") as rows:
            rows.writelines(map(page.line_of, run))
    os.utime(file, (1_801_353_600, 1_801_353_600))
    assert main(["--rows", str(file), "--write"]) == 0
    after = copy.read_text()
    assert rows_on(after) == [page.line_of(row_of(NAMES[n])).strip() for n in (0, 2)]
    assert (f"\nMeasured on {DAY}, " in after, page.MORE in after) == (True, True)
    told = before.index(page.DAY.search(before)[0])
    assert after[:told] == before[:told]
    assert after.partition("\n## What was run\n")[2] == before.partition("\n## What was run\n")[2]
    named = capsys.readouterr().out.split(": ")[1].split()
    assert named == [each.id for n, each in enumerate(SCENARIOS) if n not in {0, 2}]


def test_the_page_says_that_more_is_played_only_while_it_is():
    """A table of all scenarios needs no such words, and gets them back where it lacks one."""
    whole = page.with_rows(page.PAGE.read_text(), {name: row_of(name) for name in NAMES}, DAY)
    assert (page.MORE in whole, len(rows_on(whole))) == (False, len(SCENARIOS))
    assert page.MORE in page.with_rows(whole, {name: row_of(name) for name in NAMES[1:]}, DAY)


@pytest.mark.parametrize("changed", [{"twice": "1"}, {"lost": "1"}, {"task": "not ended"}, {"process": "not ended"}])
def test_a_scenario_that_broke_the_promise_is_not_written(changed):
    """The page says of each row that the promise was kept; the error names the scenario."""
    with pytest.raises(ValueError, match=f"the promise was broken, so nothing is written: {NAMES[0]}"):
        page.with_rows(page.PAGE.read_text(), {NAMES[0]: row_of(NAMES[0], **changed)}, DAY)


def test_a_row_of_no_scenario_is_refused():
    """A scenario that was renamed since is played again; what is no row is named, too."""
    with pytest.raises(ValueError, match="no scenario has the name 'tides'"):
        page.read_rows(page.line_of(row_of("tides")))
    with pytest.raises(ValueError, match="a row has 1 cells"):
        page.read_rows("tides\n")
    with pytest.raises(ValueError, match="no scenario was played"):
        page.with_rows(page.PAGE.read_text(), page.read_rows("\n"), DAY)


@pytest.mark.parametrize("given", [["--write"], ["--write", "--rows", "no-such-file"], ["--write", "nothing"]])
def test_a_table_is_written_from_rows_alone(copy, given, capsys):
    """The command that writes plays nothing, and says what it needs."""
    from support.machines.__main__ import main

    before = copy.read_text()
    with pytest.raises(SystemExit):
        main(given)
    assert "--write plays nothing" in capsys.readouterr().err
    assert copy.read_text() == before
