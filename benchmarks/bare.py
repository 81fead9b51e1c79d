"""The baseline, in a separate process: threads that do nothing but ``requests.post`` prebuilt bodies."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import requests
from requests.adapters import HTTPAdapter

from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.recipients.sources import open_source
from benchmarks.data import MESSAGE
from benchmarks.service import Service
from benchmarks.sizes import CHUNK
from benchmarks.usage import Meter, Used

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT = 60.0


def bodies_of(source: str, most: int) -> list[bytes]:
    """Return the request bodies for a table, as the package's client writes them.

    :param most: maximum number of rows.
    """
    messages = itertools.islice(_messages(source), most)
    return [orjson.dumps({"Messages": chunk}) for chunk in iter(lambda: list(itertools.islice(messages, CHUNK)), [])]


def _messages(source: str) -> Iterator[dict[str, str]]:
    composer = Composer(MESSAGE, None)
    for batch in open_source(source).batches(composer.columns):
        rows = composer.compose(batch)
        for content, destination in zip(*(rows[name].to_pylist() for name in ("content", "destination")), strict=True):
            yield {"Content": content, "Destination": destination}


def post_all(url: str, bodies: list[bytes], threads: int) -> Used:
    """Post bodies from threads that share a session, and return the time used."""
    turns = itertools.count()
    failed: list[str] = []

    def work() -> None:
        try:
            while (turn := next(turns)) < len(bodies):
                response = session.post(f"{url}/bulkmessages", data=bodies[turn], timeout=TIMEOUT)
                response.raise_for_status()
                response.json()
        except requests.RequestException as error:
            failed.append(repr(error))

    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(pool_maxsize=threads))
        session.headers.update({"Authorization": "Bearer token", "Content-Type": "application/json"})
        workers = [threading.Thread(target=work) for _ in range(threads)]
        meter = Meter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        used = meter.read()
    if failed:
        raise RuntimeError(failed[0])
    return used


def main() -> None:
    """Run a job with ``source``, ``rows``, ``port``, ``threads`` and ``latency``."""
    job: dict[str, Any] = json.loads(Path(sys.argv[1]).read_bytes())
    bodies = bodies_of(job["source"], job["rows"])
    service = Service(job["port"])
    service.set(latency=job["latency"])
    used = post_all(service.url, bodies, job["threads"])
    result = {"used": asdict(used), "counters": asdict(service.counters())}
    Path(sys.argv[2]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
