from __future__ import annotations

import sqlite3
from contextlib import closing

from airflow_provider_sms.cli.main import main

TOKEN, TEXT = "sandbox-token-0123", "Your appointment is tomorrow"


def test_what_the_balance_tells_names_nobody(send, people, sandbox, ledger_path):
    """The words that the ledger keeps, which errors, commands and pages show, have no number, text or token."""
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_before"}])
    assert send(people(400), TEXT, campaign="reminders", concurrency=1).summary["unknown"] == 100
    with closing(sqlite3.connect(ledger_path)) as ledger, ledger:
        # A minute later.
        ended = "(SELECT max(finished_at) FROM sms_request)"
        ledger.execute(f"UPDATE sms_request SET deadline = {ended}, evidence = NULL WHERE state = 'unknown'")
    main(["unknown", "--read-balance"])
    with closing(sqlite3.connect(ledger_path)) as ledger:
        told = [words for (words,) in ledger.execute("SELECT evidence FROM sms_request WHERE evidence IS NOT NULL")]
        numbers = [str(number) for (number,) in ledger.execute("SELECT destination FROM sms_message")]
    assert (len(told), len(numbers)) == (1, 400)
    assert not any(secret in " ".join(told) for secret in (*numbers, "appointment", TOKEN))
