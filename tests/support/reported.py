"""A campaign of one attempt, as the pages and the commands read it."""

from __future__ import annotations

from airflow_provider_sms.ledger.campaigns import require_campaign
from airflow_provider_sms.monitoring.counts import Counts, counts_of
from airflow_provider_sms.monitoring.models import Attempt, Campaign

NOW = 10_000.0


def campaign(
    state,
    reports="ended",
    *,
    counts=(0,),
    ago=1.0,
    silent=False,
    total=None,
    done=None,
    not_sent=0,
    dag_id="d",
    **figures,
):
    """Return a campaign.

    :param reports: state that the attempt reported last.
    :param ago: seconds since then.
    :param figures: that it reported.
    """
    attempt = Attempt(
        1, dag_id, "t", "r", 2, 1, reports, NOW - ago, total, done, not_sent, 0, None, figures, silent=silent
    )
    return Campaign(1, "spring", NOW, state, Counts(*counts), [attempt])


def counts(store, name="c"):
    """Return the counts of a campaign."""
    with store.read() as connection:
        campaign_id = require_campaign(connection, name)
        return counts_of(connection, [campaign_id], store.clock())[campaign_id]
