"""Tables of a few people, scanned and planned."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_sms.messages.prepare import Preparation
from airflow_provider_sms.planning.plan import make_plan
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.planning.scan import Scan
from airflow_provider_sms.planning.suppression import read_suppressed
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.stop_flag import StopFlag


def number(n):
    """Return the number of a person."""
    return str(27_820_000_000 + n)


def texted(numbers, text="Hi"):
    """Return a table of numbers and a text."""
    return pa.table({"destination": list(numbers), "text": [text] * len(numbers)})


def scanned(rows, *, suppress=None, preview=None, key_columns=None, cost_per_part=1, limits=None):
    """Return the scan of a table whose texts are a column of it."""
    listed = None if suppress is None else read_suppressed(open_source(suppress), "destination", None)
    scan = Scan(Prices(cost_per_part), listed, preview, keyed_by_text=key_columns is None)
    preparation = Preparation(None, "text", key_columns=key_columns)
    scan.read(open_source(rows), preparation, StopFlag(), limits and limits.check_rows)
    return scan


def planned(rows, *, chunk_size=100, balance=None, seconds_per_request=None, **how):
    """Return the plan of such a table."""
    scan = scanned(rows, **how)
    return make_plan("c", scan, chunk_size=chunk_size, balance=balance, seconds_per_request=seconds_per_request)
