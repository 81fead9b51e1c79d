from __future__ import annotations

import pytest
from support.sending import people

from airflow_provider_sms.sending import backlog as backlog_module
from airflow_provider_sms.sending.backlog import Backlog
from airflow_provider_sms.sending.claims import Chunk
from airflow_provider_sms.sending.tally import Tally


@pytest.fixture
def bound(monkeypatch):
    """Let few messages be remembered: a test of the real number would take a minute."""
    monkeypatch.setattr(backlog_module, "MAX_HELD", 20)
    return 20


def test_no_more_is_remembered_of_what_others_hold_than_the_bound(enter, bound):
    """Memory is flat, however much of the table other live processes hold: reading on waits for their outcome."""
    held = people(1000)
    other = enter(1)
    other.commit(chunks=[Chunk([m.key for m in held], [m.destination for m in held])], claim_seconds=60.0)
    read = []

    def blocks():
        for start in range(0, 1000, 10):
            read.append(start)
            yield held[start : start + 10]

    backlog = Backlog(blocks(), enter(2), Tally(), resend=lambda request_id: False)
    assert backlog.take(100) == ([], {})
    assert (len(read) * 10, backlog.readable, backlog.empty) == (bound, False, False)
