"""A table, at the end of a run of pytest, of where its time went: by folder, by fixture and by test."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import PurePath

import pytest

SLOWEST = 12
"""Lines of each list."""


def pytest_configure(config):
    config.pluginmanager.register(Durations())


class Durations:
    """Collects, in each process of a run, and prints in the one that reports."""

    def __init__(self):
        self.folders = defaultdict(lambda: [0, 0.0, 0.0])
        self.fixtures = defaultdict(lambda: [0, 0.0])
        self.tests = defaultdict(float)
        self._nested = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        began, processor = time.perf_counter(), _processor_seconds()
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - began
            folder = self.folders[str(PurePath(item.nodeid.partition("::")[0]).parent)]
            folder[0] += 1
            folder[1] += seconds
            folder[2] += _processor_seconds() - processor
            self.tests[item.nodeid] += seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        began = time.perf_counter()
        self._nested.append(0.0)
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - began
            own = seconds - self._nested.pop()
            if self._nested:
                self._nested[-1] += seconds
            fixture = self.fixtures[f"{fixturedef.argname} ({fixturedef.baseid or 'pytest'}, {fixturedef.scope})"]
            fixture[0] += 1
            fixture[1] += own

    def pytest_sessionfinish(self, session):
        """Hand over what a worker of pytest-xdist has collected."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["durations"] = {
                "folders": dict(self.folders),
                "fixtures": dict(self.fixtures),
                "tests": dict(self.tests),
            }

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """Add what a worker has collected."""
        handed = getattr(node, "workeroutput", {}).get("durations", {})
        for name in ("folders", "fixtures"):
            table = getattr(self, name)
            for key, values in handed.get(name, {}).items():
                table[key][:] = [a + b for a, b in zip(table[key], values, strict=True)]
        self.tests.update(handed.get("tests", {}))

    def pytest_terminal_summary(self, terminalreporter):
        """Print the table."""
        if sum(seconds for _, seconds, _ in self.folders.values()) < 1:
            return
        write = terminalreporter.write_line
        terminalreporter.section("where the time went")
        write(f"{'seconds':>8} {'of CPU':>8} {'tests':>6}  folder")
        for folder, (count, seconds, processor) in _slowest(self.folders, 1, None):
            write(f"{seconds:8.1f} {processor:8.1f} {count:6}  {folder}")
        write(f"{'seconds':>8} {'':8} {'times':>6}  slowest fixtures, to set up")
        for fixture, (count, seconds) in _slowest(self.fixtures, 1):
            write(f"{seconds:8.1f} {'':8} {count:6}  {fixture}")
        write(f"{'seconds':>8} {'':15}  slowest tests, fixtures included")
        for nodeid, seconds in sorted(self.tests.items(), key=lambda pair: -pair[1])[:SLOWEST]:
            write(f"{seconds:8.1f} {'':15}  {nodeid}")


def _slowest(table, column, count=SLOWEST):
    return sorted(table.items(), key=lambda pair: -pair[1][column])[:count]


def _processor_seconds():
    """Return the seconds that this process, and those of its children that have ended, spent on a processor."""
    return sum(os.times()[:4])
