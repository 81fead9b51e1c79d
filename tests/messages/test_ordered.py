from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.messages.ordered import are_in

integers = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9))


@given(integers, integers)
def test_each_is_looked_up(ordered, values):
    """A value is in an array or not, whatever the order in which it is asked for."""
    found = are_in(np.array(sorted(ordered), np.int64), np.array(values, np.int64))
    assert [value in ordered for value in values] == found.tolist()
