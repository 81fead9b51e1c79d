from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from airflow_provider_sms.recipients.forms import is_dataframe, is_rows, is_stream

ROWS = [{"destination": "27820000001"}]
TABLE = pa.Table.from_pylist(ROWS)


class Stream:
    def __arrow_c_stream__(self, requested_schema=None): ...


IN_MEMORY = [ROWS, tuple(ROWS), [], iter(ROWS), (row for row in ROWS), pd.DataFrame(ROWS)]
IN_MEMORY += [TABLE, TABLE.to_batches()[0], TABLE.to_reader(), Stream()]


@pytest.mark.parametrize("source", IN_MEMORY, ids=lambda source: type(source).__name__)
def test_rows_are_told_by_their_type(source):
    """Whatever holds or yields rows may be recipients; nobody looks into it."""
    assert is_rows(source)


@pytest.mark.parametrize(
    "other", [None, "a.csv", b"a.csv", 5, 5.5, {5}, {"destination": []}, np.array([5]), Stream, len], ids=repr
)
def test_other_objects_are_no_rows(other):
    """A class is not what it makes, and a path is where rows are."""
    assert not is_rows(other)


def test_a_stream_is_told_by_its_type():
    """An object may take any name for one of its columns. A DataFrame is told apart, whatever it offers."""
    assert is_stream(Stream())
    assert not is_stream(SimpleNamespace(__arrow_c_stream__=len))
    assert [is_dataframe(each) for each in (pd.DataFrame(), TABLE, ROWS)] == [True, False, False]
