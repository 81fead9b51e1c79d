"""Tables of a few people, checked and planned."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.planning.check import CheckedTable
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.planning.suppression import read_suppressed
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.stop_flag import StopFlag


def number(n):
    """Return the number of a person."""
    return str(27_820_000_000 + n)


def texted(numbers, text="Hi"):
    """Return a table of numbers and a text."""
    return pa.table({"destination": list(numbers), "text": [text] * len(numbers)})


def checked(
    rows, *, message=None, suppress=None, campaign=None, resends=False, key_columns=None, cost_per_part=1, limits=None
):
    """Return the checked table of rows whose texts are a column of it, unless there is a message."""
    listed = None if suppress is None else read_suppressed(open_source(suppress), "destination", None)
    composer = Composer(message, "text" if message is None else None, key_columns=key_columns)
    table, stop = CheckedTable(composer, Prices(cost_per_part)), StopFlag()
    table.read(open_source(rows), stop, limits)
    table.decide(stop, listed, campaign, resends=resends)
    return table


def planned(rows, *, balance=None, **how):
    """Return the plan of such a table."""
    return checked(rows, **how).plan("c", chunk_size=100, balance=balance)
