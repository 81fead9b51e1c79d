from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.planning.sorted_integers import are_in, distinct

INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.lists(INTEGERS, max_size=20), max_size=5), st.lists(INTEGERS, max_size=20))
def test_each_integer_is_there_once_and_is_found(pieces, others):
    """In ascending order, whatever the arrays that they come in; and nothing else is found."""
    every = {value for piece in pieces for value in piece}
    integers = distinct(np.array(piece, np.int64) for piece in pieces)
    assert integers.tolist() == sorted(every)
    asked = np.array([*others, *every], np.int64)
    assert are_in(integers, asked).tolist() == [value in every for value in asked.tolist()]
