"""Defects of where the ledger lives: what a server or a file is believed, and how long a server is waited for."""

from __future__ import annotations

from support.faults.mutation import SQLITE, Mutation

FORGET = "tests/ledger/test_forget.py"
DURABILITY = "tests/ledger/test_postgres_durability.py"
CANCELLED = "test_a_commit_whose_wait_for_the_standby_is_cancelled_is_no_claim"

STORE_MUTATIONS = (
    Mutation(
        "PostgreSQL: a warning on the commit is passed over",
        "ledger/postgres.py",
        "        if warnings := connection.info[WARNINGS]:\n",
        "        if False:\n",
        (DURABILITY,),
        first=CANCELLED,
    ),
    Mutation(
        "PostgreSQL: fsync need not be on",
        "ledger/postgres_engine.py",
        "    if not fsync:\n",
        "    if False:\n",
        (DURABILITY,),
        first="test_a_server_that_does_not_wait_for_its_disk_is_refused",
    ),
    Mutation(
        "PostgreSQL: standbys that nobody waits for are passed over",
        "ledger/postgres_engine.py",
        "    if standbys and not waits:\n",
        "    if False:\n",
        (DURABILITY,),
        first="test_a_standby_that_nobody_waits_for_is_warned_of",
    ),
    Mutation(
        "PostgreSQL: a standby that is required need not be synchronous",
        "ledger/postgres_engine.py",
        "    if require_standby and not (waits and synchronous):\n",
        "    if require_standby and not waits:\n",
        (DURABILITY,),
        first="test_what_is_required_is_there_for_sure",
    ),
    Mutation(
        "PostgreSQL: a standby will do",
        "ledger/postgres_engine.py",
        "        if standby:\n",
        "        if False:\n",
        (DURABILITY,),
        first="test_a_standby_is_no_ledger",
    ),
    Mutation(
        "SQLite: a file that is mounted by itself will do",
        "ledger/sqlite.py",
        "    if nearest == file:\n",
        "    if False:\n",
        (SQLITE,),
        first="test_a_file_that_is_mounted_by_itself_is_refused",
    ),
    Mutation(
        "forgetting a person takes their messages from their requests",
        "ledger/forget.py",
        ".values(destination=FORGOTTEN_NUMBER)",
        ".values(destination=FORGOTTEN_NUMBER, request_id=0)",
        (FORGET,),
        first="test_a_message_stays_claimed_without_its_number",
    ),
)
