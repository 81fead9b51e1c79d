from __future__ import annotations

import pytest
from sqlalchemy import text

from airflow_provider_sms.exceptions import LedgerVersionError
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION


def sql(store, *statements):
    """Run statements in a ledger, and return the rows of the last one."""
    with store.write(1) as connection:
        for statement in statements:
            result = connection.execute(text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []


def of_version(store, version, *statements):
    sql(store, *statements, f"UPDATE sms_version SET version = {version}")


def test_a_new_ledger_records_its_version_once(open_store):
    """Opening it again changes nothing."""
    open_store()
    assert sql(open_store(), "SELECT version FROM sms_version") == [(SCHEMA_VERSION,)]


@pytest.mark.parametrize(
    ("version", "error"), [(99, "has version 99.* Install the one"), (0, "has version 0.* Install the one")]
)
def test_a_ledger_of_another_version_is_left_as_it_is(open_store, version, error):
    """Nothing is created in it, and the error says what to do."""
    of_version(open_store(), version, "DROP TABLE sms_balance")
    with pytest.raises(LedgerVersionError, match=f"has version {version}, .* Install the one that wrote it"):
        open_store()
    with pytest.raises(LedgerVersionError):
        open_store()
