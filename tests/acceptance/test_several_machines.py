"""Several machines behind relays, which need no rights; ``make several-machines`` plays all scenarios."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from support.machines import packages
from support.machines.engine import running_engine
from support.machines.scenarios import SCENARIOS
from support.machines.stage import play

PLAYED = ("worker_killed", "loses_database_60")
RUNNING = ("database", "broker", "api", "messaging")
"""The services of these scenarios; no pooler runs."""

pytestmark = pytest.mark.skipif(packages.skips_tests(), reason="servers are not installed")


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Play some scenarios with two workers, in one Airflow, and return the results and what the Airflow has used."""
    # Servers that run as another user look into it.
    folder = tmp_path_factory.mktemp("machines")
    # Other programs make files there meanwhile, too: only what these processes use is theirs.
    before = {path for shared in shared_folders() for path in shared.iterdir()}
    with running_engine("relays", folder, workers=2) as engine:
        folders = [folder, engine.services.database.folder.parent]
        processes = processes_below(folders)
        places, made = places_of(processes), entries_of(processes) - before
        services = {engine.network.place(service) for service in RUNNING}
        results = play(engine, [each for each in SCENARIOS if each.id in PLAYED], people=2_000)
    played = {each.scenario.id: each for each in results}
    return SimpleNamespace(played=played, folders=folders, places=places, services=services, made=made)


def processes_below(folders):
    """Return the living processes that work in one of the folders or below it."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            cwd = Path(process.cwd())
            if process.status() != psutil.STATUS_ZOMBIE and any(map(cwd.is_relative_to, folders)):
                found.append(process)
    return found


def places_of(processes):
    """Return the hosts and ports at which the processes listen, and this one, which has the relays and the sandbox."""
    found = set()
    for process in [*processes, psutil.Process()]:
        with suppress(psutil.Error):
            found.update(tuple(each.laddr) for each in process.net_connections("tcp") if each.status == "LISTEN")
    return found


def shared_folders():
    """Return the folders in which programs leave files behind: shared memory, and the temporary folder."""
    return {Path("/dev/shm"), Path(tempfile.gettempdir())}


def entries_of(processes):
    """Return the entries of these folders in which the processes have files open or mapped."""
    found = set()
    for process in processes:
        with suppress(psutil.Error):
            found.update(Path(each.path) for each in (*process.open_files(), *process.memory_maps()))
    return {
        shared / path.relative_to(shared).parts[0]
        for shared in shared_folders()
        for path in found
        if path.is_relative_to(shared)
    }


@pytest.mark.parametrize("name", PLAYED)
def test_whatever_befalls_a_worker_nobody_is_texted_twice_or_lost(ended, name):
    """The witness: nobody twice or lost, unknown only what a dead process had in flight; it fails on those alone."""
    result = ended.played[name]
    assert (result.twice, result.lost) == (0, 0)
    assert result.unknown <= result.allowed
    assert None not in (result.quiet, *result.seconds)
    # How long they take, `make several-machines` judges: a test depends on no other load.
    assert result.unexcused == 0


def test_no_other_machine_reaches_an_engine(ended):
    """Airflow, its workers, the services and the relays to them listen on 127.0.0.1 and on no other address."""
    assert ended.services <= ended.places
    assert {host for host, _ in ended.places} == {"127.0.0.1"}


def test_an_engine_that_has_ended_leaves_no_process_and_no_file(ended):
    """No process works in its folder or its database's, and what it made in shared memory and elsewhere is gone."""
    assert processes_below(ended.folders) == []
    assert ended.folders[1] in ended.made
    assert [path for path in ended.made if path.exists()] == []
