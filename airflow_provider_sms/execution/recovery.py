"""Recording the outcomes that earlier attempts on this machine kept in files when their ledger did not take them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_provider_sms.execution.failures import describe
from airflow_provider_sms.hooks.ledger import recovery_folder
from airflow_provider_sms.ledger.recovery import files_in, read_file, record, remove_half_written

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_sms.ledger.backend import LedgerBackend

log = logging.getLogger(__name__)


def record_files(store: LedgerBackend) -> None:
    """Record all files that are found, whoever wrote them, and remove the recorded ones. Never raises.

    A file that does not fit the ledger may fit another one that tasks use; it stays, and the log says so.
    """
    folder = recovery_folder()
    remove_half_written(folder)
    for path in files_in(folder):
        try:
            _record(store, path)
        except Exception as error:  # noqa: BLE001  # an old file must not keep a campaign from being sent
            if not path.exists():
                continue  # another task of this machine has recorded it meanwhile
            log.warning("The outcomes in %s are not recorded. %s", path, describe(error))


def _record(store: LedgerBackend, path: Path) -> None:
    unrecorded = read_file(path)
    recorded = record(store, unrecorded)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s is recorded, and cannot be removed: %s. It holds numbers", path, error.strerror)
    states = ", ".join(f"request {request_id} is {state}" for request_id, state in sorted(recorded.states.items()))
    log.info(
        "Recorded what an earlier attempt kept in %s, of campaign %s: %s", path, unrecorded.origin.campaign, states
    )
    for twice in recorded.texted_twice:
        log.error("Request %d was accepted after others could claim its messages: %s", twice.request_id, twice)
