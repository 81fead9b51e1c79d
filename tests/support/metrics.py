"""A backend for Airflow's metrics that stores them."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any, NamedTuple


class Told(NamedTuple):
    kind: str
    name: str
    value: float
    tags: dict[str, str] | None


class Recorder:
    """Stores the metrics whose names begin with ``sms.``, and raises ``error`` for each, if there is one."""

    def __init__(self):
        self.told: list[Told] = []
        self.error = None

    def incr(self, stat, count=1, rate=1, *, tags=None):
        self._tell("count", stat, count, tags)

    def gauge(self, stat, value, rate=1, delta=False, *, tags=None):  # noqa: FBT002  # Airflow's signature
        self._tell("gauge", stat, value, tags)

    def timing(self, stat, dt, *, tags=None):
        self._tell("time", stat, dt, tags)

    def decr(self, *_: Any, **__: Any):
        pass

    @contextmanager
    def timer(self, *_: Any, **__: Any):
        yield SimpleNamespace(duration=0.0)

    def _tell(self, kind, name, value, tags):
        if name.startswith("sms."):
            self.told.append(Told(kind, name, value, tags))
            if self.error is not None:
                raise self.error

    def counts(self):
        """Return the sums of the counters."""
        counts = Counter()
        for told in self.told:
            if told.kind == "count":
                counts[told.name] += told.value
        return counts

    def values(self, name):
        """Return the calls for one metric."""
        return [told.value for told in self.told if told.name == name]


def install(recorder, monkeypatch):
    """Install the backend in every place where Airflow keeps one."""
    from airflow.providers.common.compat.sdk import Stats

    if not hasattr(Stats, "initialize"):  # before 3.2
        monkeypatch.setattr(Stats, "instance", recorder, raising=False)
        monkeypatch.setattr(Stats, "_instance_pid", os.getpid(), raising=False)
        return
    places = [Stats]
    with suppress(ImportError):
        from airflow.observability.stats import Stats as OfServers

        places.append(OfServers)
    for place in places:
        known = inspect.signature(place.initialize).parameters
        more = {"export_legacy_names": False} if "export_legacy_names" in known else {}
        place.initialize(factory=lambda: recorder, **more)
