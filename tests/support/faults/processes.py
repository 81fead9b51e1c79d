"""Work in processes of their own, which begin together and can be killed."""

from __future__ import annotations

from contextlib import contextmanager
from multiprocessing import get_context

SPAWN, SERVER = get_context("spawn"), get_context("forkserver")
SERVER.set_forkserver_preload(
    ["pyarrow.parquet", "airflow_provider_sms.execution.bulk", "airflow_provider_sms.sandbox.server"]
)
PATIENCE = 180.0
"""Seconds in which processes load what they need, or the first of them ends."""


class Started:
    """A process that works.

    :param pipe: gives what the work returns.
    """

    def __init__(self, process, pipe):
        self._process = process
        self._pipe = pipe

    def result(self):
        """Wait for the end of the work, and return its result.

        :raises EOFError: it has none.
        """
        return self._pipe.recv()

    @property
    def ended(self):
        return not self._process.is_alive()

    def kill(self):
        """Kill the process, unless it has ended."""
        self._process.kill()
        self._process.join()


@contextmanager
def started(work, orders, prepare=None):
    """Yield processes that have just begun to work, all at once. Leaving the context ends them.

    :param orders: arguments of the work of each process.
    :param prepare: what each does before they begin, in a new interpreter that has this one's environment. None means
        that they are copies of a process that has loaded most of what a send needs, and has no threads.
    """
    kind = SPAWN if prepare else SERVER
    together = kind.Barrier(len(orders) + 1)
    processes = []
    try:
        for arguments in orders:
            mine, theirs = kind.Pipe(duplex=False)
            process = kind.Process(target=_run, args=(together, theirs, prepare, work, arguments), daemon=True)
            process.start()
            theirs.close()
            processes.append(Started(process, mine))
        together.wait(PATIENCE)
        yield processes
    finally:
        for each in processes:
            each.kill()


def _run(together, pipe, prepare, work, arguments):
    if prepare is not None:
        prepare()
    together.wait(PATIENCE)
    pipe.send(work(*arguments))
