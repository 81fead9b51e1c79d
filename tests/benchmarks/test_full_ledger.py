from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import URL
from support.told import tell

from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.monitoring import campaigns
from benchmarks.full_ledger import REQUESTS, UNKNOWN_AT_ONCE, fill, large_campaign
from benchmarks.sizes import CHUNK

CAMPAIGNS, MESSAGES = 1_000, 20_000


def listed_campaigns(reader):
    """Return all campaigns, of as many pages of the list as they take."""
    listed, before = [], None
    while True:
        page = campaigns.list_campaigns(reader, may_see=lambda _: True, limit=CAMPAIGNS + 1, before=before)
        listed += page.campaigns
        before = page.older
        if before is None:
            return listed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_full_ledger_is_one_that_the_package_made(kind, request, tmp_path):
    """Pages and tasks can use the full ledger like any other, and all that pages count is in it."""
    file = tmp_path / "full.db"
    sqlite = kind == "sqlite"
    url = URL.create("sqlite", database=str(file)) if sqlite else request.getfixturevalue("postgres_url")
    fill(url, CAMPAIGNS, MESSAGES)
    store = open_sqlite(file) if sqlite else open_postgres(url)
    tell(store, "one more", claims=[(3, "accepted")])
    store.close()
    reader = open_sqlite(file, create=False) if sqlite else open_postgres(url, create=False)
    number = large_campaign(CAMPAIGNS)
    listed = listed_campaigns(reader)
    small, large = listed[1], next(each for each in listed if each.id == number)
    reader.close()

    # Two campaigns have failed, two have an unknown request, and the large one has several.
    by_state = Counter(each.state for each in listed)
    assert by_state == {"complete": CAMPAIGNS + 1 - 5, "needs attention": 5}
    assert (listed[0].name, listed[0].counts.accepted) == ("one more", 3)
    assert (small.counts.accepted, small.counts.unknown) == ((REQUESTS - 1) * CHUNK, CHUNK)
    assert (large.counts.accepted + large.counts.unknown, large.counts.unknown) == (MESSAGES, UNKNOWN_AT_ONCE * CHUNK)
