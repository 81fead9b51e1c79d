from __future__ import annotations

import os
import shutil

import pytest
from support.faults.arena import Arena
from support.faults.disk import CALLS, Disk, command, full_disk, run, strace
from support.faults.tries import Ledgers

CHUNK = 4

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None or os.geteuid() != 0, reason="this needs strace, and root for a disk of its own"
)


@pytest.fixture
def arena(tmp_path):
    """A service, and a ledger in a folder of its own."""
    (tmp_path / "disk").mkdir()
    with Arena(Ledgers.in_file(tmp_path / "disk" / "ledger.db")) as arena:
        yield arena


def test_a_power_cut_at_any_post_leaves_its_claim(arena, tmp_path):
    """When the first byte of a request goes out, its claim is in what the disk was told to keep."""
    trace = tmp_path / "trace"
    watched = strace("-y", "-xx", "-s", "200000", "-o", str(trace), "-e", f"trace={CALLS}")
    disk = Disk(tmp_path / "disk")
    assert run([*watched, *command(arena.campaign())]) == ""
    claims = list(disk.claims_at_posts(trace))
    assert len(claims) == 10
    assert [claims for number, claims in enumerate(claims, 1) if claims < CHUNK * number] == []


@pytest.mark.parametrize(("first", "how_often"), [(3, "+"), (8, ""), (15, "+")], ids=["for good", "once", "late"])
def test_a_disk_that_does_not_sync_texts_nobody_twice(arena, first, how_often, tmp_path):
    """A commit whose sync failed claims nothing; the next attempt sends the rest."""
    campaign, trace = arena.campaign(), tmp_path / "trace"
    run([*strace("-o", str(trace), "-e", f"inject=fdatasync:error=EIO:when={first}{how_often}"), *command(campaign)])
    assert "INJECTED" in trace.read_text()
    arena.look(campaign, None)
    arena.resume(f"sync {first} fails", campaign)
    arena.judge_all()
    assert (arena.figures.cases, arena.figures.broken) == (1, 0)


@pytest.mark.parametrize("left", [0, 100_000, 400_000])
def test_a_disk_that_is_full_texts_nobody_twice(tmp_path, left):
    """A send whose ledger has no room left ends, and the next one, which has room, sends the rest."""
    assert run(full_disk(tmp_path, left)).split() == ["LedgerError", "0"]
