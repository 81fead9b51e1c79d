from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.messages.subset import MessageSubset

TABLE = {each << 50 for each in range(12)}
SOME = st.sets(st.sampled_from(sorted(TABLE)))


def halves(some):
    return np.array(sorted(some), np.uint64)


def subset(some):
    return MessageSubset.of(halves(some), halves(TABLE - some))


@given(SOME, SOME)
def test_a_subset_includes_what_is_in_it(some, others):
    """Whether it names its messages or all others, and however it was written in between."""
    kept = MessageSubset.from_bytes(subset(some).to_bytes())
    assert kept.includes(subset(others)) == (others <= some)


@given(SOME)
def test_it_takes_eight_bytes_for_each_message_that_it_has_or_has_not(some):
    """Whichever are fewer: a table of which nearly everything is sent takes little room."""
    assert len(subset(some).to_bytes()) == 1 + 8 * min(len(some), len(TABLE - some))


def test_the_bytes_never_change():
    """A ledger keeps them for years, and is read on other machines."""
    assert subset({1 << 50}).to_bytes() == b"\0\0\0\0\0\0\0\x04\0"
    assert subset(TABLE - {3 << 50}).to_bytes() == b"\x01\0\0\0\0\0\0\x0c\0"


def test_a_message_in_two_rows_is_in_it_once():
    """Rows of one message have one key."""
    twice = np.array([5, 5, 7], np.uint64)
    assert MessageSubset.of(twice, np.arange(10, 20, dtype=np.uint64)).halves.tolist() == [5, 7]
