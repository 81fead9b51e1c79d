from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.recipients.forms import could_be_number, is_dataframe, is_rows, is_stream, read_region

ROWS = [{"destination": "27820000001"}]
TABLE = pa.Table.from_pylist(ROWS)


class Stream:
    def __arrow_c_stream__(self, requested_schema=None): ...


STREAMS = (pa.Table, pa.RecordBatch, pa.RecordBatchReader, Stream)
IN_MEMORY = [ROWS, tuple(ROWS), [], iter(ROWS), (row for row in ROWS), pd.DataFrame(ROWS)]
IN_MEMORY += [TABLE, TABLE.to_batches()[0], TABLE.to_reader(), Stream()]
OTHERS = [None, "a.csv", b"a.csv", 5, 5.5, {5}, {"destination": []}, np.array([5]), Stream, len]
OTHERS += [SimpleNamespace(__arrow_c_stream__=len)]


@pytest.mark.parametrize(
    ("source", "are_rows"), [(each, True) for each in IN_MEMORY] + [(each, False) for each in OTHERS]
)
def test_rows_are_told_by_their_type(source, are_rows):
    """Nobody looks into it: a class is not what it makes, a path is where rows are, and any name may be a column's."""
    assert is_rows(source) == are_rows
    assert is_dataframe(source) == isinstance(source, pd.DataFrame)
    # A DataFrame of a newer pandas has the interface, too.
    assert is_dataframe(source) or is_stream(source) == isinstance(source, STREAMS)


NUMBERS = ["27820000001", "+27 (82) 000-0001", "0820000001", "27820000001.0", "27820000001, 27820000002"]
NUMBERS += ["082/000/0001", "\N{FULLWIDTH DIGIT TWO}7820000001", "2026-01-31 27820000001"]
DATES = ["20260131", "2026-01-31", "2026-01-31T09:00:00+00:00", "2026/01/31", "2026/01/31/07"]
NO_NUMBERS = ["082", "", "/27820000001", "*27820000001", "27820000001.csv", "people.parquet", "{{ 27820000001 }}"]


@pytest.mark.parametrize("text", NUMBERS + NO_NUMBERS + DATES)
def test_a_text_that_could_be_a_number_is_known(text):
    """It has seven digits beside dates, and nothing of a path."""
    assert could_be_number(text) == (text in NUMBERS)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        *((each, repr(each)) for each in ("", "XX", "ZAF", "South Africa", "27", None, 5, ["ZA"])),
        ("27820000001", "'2782*****01'"),  # two arguments of a command were mixed up
        ("UK", "'UK'; did you mean 'GB'?"),
        *((each, None) for each in ("ZA", "za", "Za", " za ")),
    ],
)
def test_a_region_is_the_same_however_it_is_written(written, shown):
    """In small letters, too; for what is no region the error shows how one is written, and no number."""
    if shown is None:
        assert read_region(written) == "ZA"
        return
    with pytest.raises(InputError) as caught:
        read_region(written)
    words = "default_region must be a country as in ISO 3166 alpha-2, such as 'ZA', not "
    assert str(caught.value) == words + shown
