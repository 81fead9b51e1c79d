"""The command that records the outcomes that a task kept in a file because it could not write to its ledger: recover.

It states facts, and recording a file twice changes nothing, so it asks for no confirmation.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sms.cli.console import command, print_message
from airflow_provider_sms.cli.existing_ledger import existing_ledger
from airflow_provider_sms.exceptions import InputError, LedgerError
from airflow_provider_sms.formatting import counted, task_words
from airflow_provider_sms.ledger.model import NOT_SENT

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_sms.ledger.backend import LedgerBackend


@command
def recover_files(args: Namespace) -> None:
    """Record files, and remove the recorded ones; a file that does not fit does not hold up the others."""
    left = 0
    with existing_ledger(args) as store:
        for path in map(Path, args.files):
            try:
                _recover(store, path)
            except (InputError, LedgerError) as error:
                print_message(f"{path} is not recorded. {error}")
                left += 1
    if left < len(args.files):
        print_message("If a task failed because of these requests, clear it now in Airflow")
    if left:
        raise InputError(f"{counted(left, 'file')} could not be recorded")


def _recover(store: LedgerBackend, path: Path) -> None:
    from airflow_provider_sms.ledger.recovery import read_file, record

    unrecorded = read_file(path)
    origin = unrecorded.origin
    claimant = origin.claimant
    recorded = record(store, unrecorded)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        print_message(f"{path} is recorded, and cannot be removed: {error.strerror}. It holds numbers")
    task = task_words(claimant["dag_id"], claimant["task_id"], claimant["run_id"], claimant["map_index"])
    print_message(f"Recorded from {path}: campaign {origin.campaign}, attempt {claimant['try_number']} of {task}")
    events = {outcome.request_id: outcome.event_id for outcome in unrecorded.outcomes}
    for request_id, state in sorted(recorded.states.items()):
        event_id = events.get(request_id)
        event = "" if event_id is None else f", event id {event_id}"
        print_message(f"  Request {request_id} is {'not sent' if state == NOT_SENT else state}{event}")
    for twice in recorded.texted_twice:
        print_message(f"  Request {twice.request_id}: {twice}")
