from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_sms.messages.prepare import Preparation


@pytest.fixture
def prepared():
    """Prepare three rows, from the tenth of a source on; the second has no number."""
    rows = {"destination": ["+27 82 123 4567", None, "27821234568"], "name": ["Thandi", "x", "Sipho"]}
    return Preparation("Hi {name}", None).prepare(pa.RecordBatch.from_pydict(rows), 10)


def test_reprs_show_no_messages(prepared):
    """What is prepared may be logged by mistake: it shows counts only."""
    assert repr(prepared) == "PreparedBatch(2 messages of 3 rows)"


def test_some_of_the_messages_are_kept_whole(prepared):
    """What stays of a message are its row, number, text and key; the rows that gave none stay, too."""
    kept = prepared.keeping(np.array([False, True]))
    assert (kept.rows, kept.destinations, kept.contents) == ([12], ["27821234568"], ["Hi Sipho"])
    assert kept.keys == prepared.keys[1:]
    assert (kept.num_rows, [rejected.row for rejected in kept.rejected], kept.rejected_numbers) == (3, [11], [None])
