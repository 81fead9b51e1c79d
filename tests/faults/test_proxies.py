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

from airflow_provider_sms.sending import landings


@pytest.fixture
def ledgers(tmp_path):
    """A ledger in a file: what stands between client and service does not know which kind it is."""
    return Ledgers.in_file(tmp_path / "ledger.db")


@pytest.fixture(params=INTERMEDIARIES, ids=lambda kind: kind.package)
def kind(request):
    """Each intermediary; its tests are skipped where its package is not installed."""
    return installed(request.param)


@pytest.fixture
def repeating():
    """A setup of nginx that repeats requests."""
    return next(setup for setup in installed(Nginx).setups if setup.resends)


def installed(kind):
    """Give an intermediary whose package is there; else skip the test, or fail it where it must not be skipped."""
    if kind.path() is None:
        reason = f"the package {kind.package} is not installed"
        pytest.fail(reason) if intermediary.is_required() else pytest.skip(reason)
    return kind


def test_through_real_proxies_the_promise_holds(ledgers, kind):
    """Whatever a proxy makes of an origin that fails, nobody is texted twice, but by one that is set to repeat."""
    figures = through_all(ledgers, kind, quick=True)
    assert (figures.broken, figures.unknown > 0, figures.by_proxies > 0) == (0, True, True)


def test_what_a_proxy_repeats_is_told_from_what_we_repeat(ledgers, repeating):
    """One POST that the service got twice is the proxy's doing, and no excuse for a proxy that should not repeat."""
    play = (proxies.QUICK_RESENDING, 2, 1)
    excused = through(ledgers, Nginx, repeating, [play])
    believed = through(ledgers, Nginx, Setup(repeating.name, repeating.settings), [play])
    assert (excused.broken, excused.by_proxies > 0) == (0, True)
    assert (believed.duplicates > 0, believed.by_proxies) == (True, 0)


def test_a_sender_that_guesses_is_caught(ledgers, repeating, monkeypatch):
    """Whoever posts again what a proxy may have passed on texts people twice, and no proxy is blamed for it."""
    monkeypatch.setattr(landings, "surely_not_sent", lambda error: True)
    assert through(ledgers, Nginx, repeating, [("stops at body of the answer, RST", 2, 1)]).duplicates > 0


def test_a_proxy_is_restarted_on_its_port_and_leaves_nothing(ledgers, kind):
    """Restarted it serves on; after its end no process of it is there, and no folder."""
    with ProxiedArena(ledgers, excused=False) as arena, Origin(arena.sandbox.base_url) as origin:
        with kind(kind.setups[0], origin.port) as proxy:
            first = proxy.group
            proxy.restart()
            assert [bool(_processes(group)) for group in (first, proxy.group)] == [False, True]
            assert one(Scene(arena, origin, proxy, threading.Lock()), "nothing", 1).summary["accepted"] > 0
        assert (_processes(proxy.group), proxy.folder.exists()) == ([], False)


def test_a_proxy_that_does_not_start_says_why_and_leaves_nothing(kind):
    """Its own words are in the error."""
    wrong = Setup("wrong", dict.fromkeys(("server", "frontend", "vcl"), "nonsense"))
    proxy = kind(wrong, 9)
    with pytest.raises(RuntimeError, match=r"wrong, did not start: (?s:.*)nonsense"), proxy:
        pass
    assert (_processes(proxy.group), proxy.folder.exists()) == ([], False)


def test_a_package_that_is_missing_is_named(ledgers, monkeypatch, capsys):
    """The part says what it did without, in its output and in the table, and plays the rest."""
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
    """Give the processes of a group, but for those of which only an exit status is left for somebody to read."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found
