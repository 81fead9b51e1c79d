"""Defects by which a note of how a try goes would cost somebody a text, or a claim its time."""

from __future__ import annotations

from support.faults.mutation import SQLITE, Mutation

LEDGER_NOTES = "tests/execution/test_ledger_progress.py"
PROGRESS_NOTES = "tests/ledger/test_progress.py"
PURGE = "tests/ledger/test_purge.py"
SENSOR = "tests/sensors/test_notes.py"

NOTE_MUTATIONS = (
    Mutation(
        "a note that fails ends the task",
        "execution/ledger_progress.py",
        "        except Exception as error:  # noqa: BLE001  # nobody",
        "        except ValueError as error:  # nobody",
        (LEDGER_NOTES,),
        first="test_a_ledger_that_takes_no_notes_stops_nothing",
    ),
    Mutation(
        "a balance that cannot be recorded ends the sensor",
        "execution/ledger_progress.py",
        "        except Exception as error:  # noqa: BLE001  # whatever",
        "        except ValueError as error:  # whatever",
        (SENSOR,),
        first="test_a_ledger_that_fails_does_not_stop_a_sensor",
    ),
    Mutation(
        "a note waits for claims of its campaign",
        "ledger/progress.py",
        "store.write(progress_lock(claimant_id), patience",
        "store.write(campaign_lock(campaign_name), patience",
        (PROGRESS_NOTES,),
    ),
    Mutation(
        "a claim has no more patience than the note before it",
        "ledger/sqlite.py",
        "busy_timeout={int(busy_seconds * 1000)}",
        "busy_timeout={int(patience * 1000)}",
        (SQLITE,),
    ),
    Mutation(
        "a campaign is forgotten whose tries still count on it",
        "ledger/purge.py",
        "        select(func.max(progress.c.updated_at)).where(progress.c.campaign_id == campaign.c.id)",
        "        select(func.min(progress.c.updated_at)).where(progress.c.campaign_id == -1)",
        (PURGE,),
    ),
)
