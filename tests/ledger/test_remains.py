from __future__ import annotations

from contextlib import closing

import pytest
from support.keys import request_of
from support.sending import claimant

from airflow_provider_sms.ledger import sqlite
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.sqlite import open_sqlite


@pytest.fixture
def path(tmp_path):
    return tmp_path / "own.db"


@pytest.fixture
def file_store(path):
    """A ledger in a file, by a build of SQLite that only marks the place of a deleted row as free."""
    with pytest.MonkeyPatch.context() as patch:
        enter_wal = sqlite._enter_wal

        def plain(connection, *, give_up):
            enter_wal(connection, give_up=give_up)
            connection.execute("PRAGMA secure_delete=OFF")

        patch.setattr(sqlite, "_enter_wal", plain)
        with closing(open_sqlite(path)) as store:
            yield store


def claim(store, numbers):
    ledger = CampaignLedger(store, "c", claimant())
    for start in range(0, len(numbers), 100):
        some = numbers[start : start + 100]
        # Keys are digests: they come in any order, and split pages everywhere.
        keys = [(int(number) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128)).to_bytes(16, "big") for number in some]
        ledger.commit(chunks=[request_of(keys, some)], claim_seconds=60.0)


@pytest.fixture
def numbers(file_store):
    """Numbers of a ledger that are spread over many pages of its file."""
    numbers = [str(27821000000 + 7919 * n) for n in range(4000)]
    claim(file_store, numbers)
    return numbers


def in_files(path, numbers):
    """Return the numbers that whoever reads the bytes of the ledger's files finds."""
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    return {number for number in numbers if int(number).to_bytes(6, "big") in content}


@pytest.mark.slow
def test_deleted_numbers_are_in_no_file_of_the_ledger(file_store, path, numbers):
    """Rows that have moved to another page before left no copy behind, and the log is emptied at once."""
    with file_store.write(1) as connection:
        connection.exec_driver_sql("DELETE FROM sms_message")
    assert file_store.remove_remains().is_gone
    assert in_files(path, numbers) == set()


def test_a_number_that_is_taken_out_of_its_row_leaves_no_copy(file_store, path, numbers):
    """The pages stay in use, so nothing else would ever overwrite a copy; and claims wait as long as before."""
    taken = numbers[::40]
    with file_store.write(1) as connection:
        for number in taken:
            connection.exec_driver_sql("UPDATE sms_message SET destination = 0 WHERE destination = ?", (int(number),))
    assert file_store.remove_remains().is_gone
    assert in_files(path, taken) == set()
    with file_store.write(0) as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 60_000


def test_a_server_keeps_deleted_rows_and_that_is_told(store):
    """Nobody but the server's owner can remove what PostgreSQL keeps, so nothing is promised."""
    left = store.remove_remains()
    told = {True: "overwritten with zeros", None: "PostgreSQL keeps deleted rows until VACUUM"}
    assert told[left.is_gone] in left.words
