"""The baseline, in a separate process: threads that do nothing but ``requests.post`` prebuilt bodies."""

from __future__ import annotations

import itertools
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import orjson
import pyarrow.parquet as pq
import requests
from requests.adapters import HTTPAdapter

from benchmarks.data import CHUNK, MESSAGE
from demo.processes import answer


def bodies_of(source: str, most: int) -> list[bytes]:
    """Return the request bodies for a table, as the package's client writes them.

    :param most: maximum number of rows.
    """
    people = pq.read_table(source, columns=["destination", "first_name", "amount"]).slice(0, most)
    bodies = []
    for start in range(0, len(people), CHUNK):
        rows = people.slice(start, CHUNK).to_pylist()
        messages = [{"Content": MESSAGE.format(**row), "Destination": row["destination"]} for row in rows]
        bodies.append(orjson.dumps({"Messages": messages}))
    return bodies


def post_all(port: int, bodies: list[bytes], threads: int) -> float:
    """Post bodies from threads that share a session, and return the CPU seconds that it took."""
    turns, url = itertools.count(), f"http://127.0.0.1:{port}/v1/bulkmessages"

    def work() -> None:
        while (turn := next(turns)) < len(bodies):
            response = session.post(url, data=bodies[turn], timeout=60)
            response.raise_for_status()
            response.json()

    with requests.Session() as session, ThreadPoolExecutor(threads) as pool:
        session.mount("http://", HTTPAdapter(pool_maxsize=threads))
        session.headers.update({"Authorization": "Bearer token", "Content-Type": "application/json"})
        began = time.process_time()
        for worker in [pool.submit(work) for _ in range(threads)]:
            worker.result()
        return time.process_time() - began


if __name__ == "__main__":
    port, source, rows, threads = json.loads(sys.argv[1])
    answer(post_all(port, bodies_of(source, rows), threads))
