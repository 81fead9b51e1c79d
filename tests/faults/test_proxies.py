from __future__ import annotations

import contextlib
import os
import threading

import psutil
import pytest
from support.faults import intermediary, proxies
from support.faults.intermediary import Setup
from support.faults.nginx import Nginx
from support.faults.origin import Origin
from support.faults.proxies import INTERMEDIARIES, ProxiedArena, one, through, through_all
from support.faults.proxy_cases import Scene
from support.faults.table import PARTS, main
from support.faults.tries import Ledgers
from support.faults.verdict import Figures

from airflow_provider_sms.sending import outcomes


@pytest.fixture
def ledgers(tmp_path):
    """A ledger in a file: a proxy behaves the same for each kind of ledger."""
    return Ledgers.in_file(tmp_path / "ledger.db")


@pytest.fixture(params=INTERMEDIARIES, ids=lambda kind: kind.package)
def kind(request):
    """Each intermediary; its tests are skipped if its package is not installed."""
    return installed(request.param)


@pytest.fixture
def repeating():
    """A setup of nginx that repeats requests."""
    return next(setup for setup in installed(Nginx).setups if setup.resends)


def installed(kind):
    """Return an intermediary whose package is installed; else skip the test, or fail it if a package is required."""
    if kind.path() is None:
        reason = f"the package {kind.package} is not installed"
        pytest.fail(reason) if intermediary.is_required() else pytest.skip(reason)
    return kind


def test_through_real_proxies_the_promise_holds(ledgers, kind):
    """However a proxy responds when the service fails, only a proxy that repeats requests texts people twice."""
    figures = through_all(ledgers, kind, quick=True)
    assert (figures.broken, figures.unknown > 0, figures.by_proxies > 0) == (0, True, True)


def test_what_a_proxy_repeats_is_told_from_what_we_repeat(ledgers, repeating):
    """A POST that the service got twice counts for the proxy only if the proxy is configured to repeat requests."""
    play = (proxies.QUICK_RESENDING, 2, 1)
    excused = through(ledgers, Nginx, repeating, [play])
    believed = through(ledgers, Nginx, Setup(repeating.name, repeating.settings), [play])
    assert (excused.broken, excused.by_proxies > 0) == (0, True)
    assert (believed.duplicates > 0, believed.by_proxies) == (True, 0)


def test_a_sender_that_guesses_is_caught(ledgers, repeating, monkeypatch):
    """A sender that repeats what a proxy may have passed on texts people twice, and the proxy is not blamed."""
    monkeypatch.setattr(outcomes, "surely_not_sent", lambda error: True)
    assert through(ledgers, Nginx, repeating, [("stops at body of the answer, RST", 2, 1)]).duplicates > 0


def test_a_proxy_is_restarted_on_its_port_and_leaves_nothing(ledgers, kind):
    """A restarted proxy serves again, and after its end no process and no folder of it is left."""
    with ProxiedArena(ledgers, excused=False) as arena, Origin(arena.sandbox.base_url) as origin:
        with kind(kind.setups[0], origin.port) as proxy:
            first = proxy.group
            proxy.restart()
            assert [bool(_processes(group)) for group in (first, proxy.group)] == [False, True]
            assert one(Scene(arena, origin, proxy, threading.Lock()), "nothing", 1).summary["accepted"] > 0
        assert (_processes(proxy.group), proxy.folder.exists()) == ([], False)


def test_a_proxy_that_does_not_start_says_why_and_leaves_nothing(kind):
    """The error holds the output of a proxy that does not start, and no process or folder of it is left."""
    wrong = Setup("wrong", dict.fromkeys(("server", "frontend", "vcl"), "nonsense"))
    proxy = kind(wrong, 9)
    with pytest.raises(RuntimeError, match=r"wrong, did not start: (?s:.*)nonsense"), proxy:
        pass
    assert (_processes(proxy.group), proxy.folder.exists()) == ([], False)


def test_a_package_that_is_missing_is_named(ledgers, monkeypatch, capsys):
    """A missing package is named in the output of the part and in its row of the table."""
    for each in INTERMEDIARIES:
        monkeypatch.setattr(each, "program", "not-to-be-found")
    assert proxies.run(ledgers, quick=True) == Figures()
    monkeypatch.setitem(PARTS, "proxies", lambda ledgers, quick: Figures(cases=7))
    assert main(["--only", "proxies", "--stores", "sqlite"]) == 0
    said = capsys.readouterr()
    for each in INTERMEDIARIES:
        assert f"the package {each.package} is not installed" in said.err
        assert each.package in said.out


def _processes(group):
    """Return the processes of a group, without zombies."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found
