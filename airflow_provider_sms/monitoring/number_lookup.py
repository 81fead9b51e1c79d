"""Looking up when one number was texted, and by which requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from sqlalchemy import select

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.request_queries import RequestRow, texted
from airflow_provider_sms.ledger.schema import campaign
from airflow_provider_sms.recipients.numbers.normalize import clean_destinations

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_sms.ledger.reader import LedgerReader


class NumberMatch(NamedTuple):
    """A request that texted a number, or may have.

    :param campaign_id: of its campaign, for a link.
    """

    campaign_id: int
    request: RequestRow


def parse_number(written: str, default_region: str | None) -> str:
    """Return the digits, with country code, of a number as a person writes it.

    :param default_region: country of a number without country code, such as ``ZA``; None means that it has one.
    :raises InputError: it is no number that can be texted; the error gives the reason, without the number.
    """
    cleaned = clean_destinations(pa.array([written], pa.string()), default_region)
    digits = cleaned.digits[0].as_py()
    if digits is None:
        raise InputError(f"This is no number that can be texted: {cleaned.reasons[0].as_py()}")
    return str(digits)


def look_up_number(
    ledger: LedgerReader, written: str, default_region: str | None, *, hidden: Collection[str]
) -> list[NumberMatch]:
    """Return the requests that texted a number or may have, the last first.

    Reads every message of the ledger: there is no index of numbers.

    :param written: the number as a person writes it.
    :param default_region: as for :func:`parse_number`.
    :param hidden: DAGs whose requests are left out.
    :raises InputError: it is no number.
    :raises SmsError: the ledger cannot be read.
    """
    rows = [row for row in texted(ledger, parse_number(written, default_region)) if row.dag_id not in hidden]
    with ledger.read() as connection:
        named = select(campaign.c.name, campaign.c.id).where(campaign.c.name.in_({row.campaign for row in rows}))
        ids = {name: number for name, number in connection.execute(named)}  # noqa: C416  # rows are no pairs to dict()
    return [NumberMatch(ids[row.campaign], row) for row in reversed(rows) if row.campaign in ids]
