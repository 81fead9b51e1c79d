from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import URL

from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.monitoring import campaigns
from benchmarks.data import CHUNK
from benchmarks.full_ledger import REQUESTS, UNKNOWN_AT_ONCE, fill, large_campaign

CAMPAIGNS, MESSAGES = 1_000, 20_000


@pytest.mark.slow
def test_all_that_pages_count_is_in_a_full_ledger(tmp_path):
    """Two campaigns have failed, two have an unknown request, and the large one has several."""
    fill(URL.create("sqlite", database=str(tmp_path / "full.db")), CAMPAIGNS, MESSAGES)
    reader, listed, before = open_sqlite(tmp_path / "full.db", create=False), [], None
    while not listed or before is not None:
        page = campaigns.list_campaigns(reader, may_see=lambda _: True, limit=CAMPAIGNS, before=before)
        listed, before = listed + page.campaigns, page.older
    reader.close()

    large = next(each for each in listed if each.id == large_campaign(CAMPAIGNS))
    assert Counter(each.state for each in listed) == {"complete": CAMPAIGNS - 5, "needs attention": 5}
    assert (listed[0].counts.accepted, listed[0].counts.unknown) == ((REQUESTS - 1) * CHUNK, CHUNK)
    assert (large.counts.accepted + large.counts.unknown, large.counts.unknown) == (MESSAGES, UNKNOWN_AT_ONCE * CHUNK)
