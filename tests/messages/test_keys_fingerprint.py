from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.messages.keys import Fingerprint, batch_digest, message_keys
from airflow_provider_sms.messages.prepared import PreparedBatch

keys = st.lists(st.binary(min_size=16, max_size=16))


def fingerprint(*batches):
    found = Fingerprint()
    for batch in batches:
        found.add(batch)
    return found.hexdigest()


@given(keys, st.randoms(use_true_random=False), st.integers(0, 5))
def test_order_does_not_matter(some, shuffler, cut):
    """A table that is sorted another way, or read in other batches, has the same fingerprint."""
    shuffled = shuffler.sample(some, len(some))
    assert fingerprint(some) == fingerprint(shuffled[:cut], shuffled[cut:])


digests = st.lists(st.integers(0, 5).map(str)).map(lambda texts: message_keys(["27821234567"] * len(texts), texts))


@given(digests, digests)
def test_other_keys_have_another(some, others):
    """Any difference between tables of messages shows: one more, less, twice or another."""
    assert (sorted(some) == sorted(others)) == (fingerprint(some) == fingerprint(others))


@given(keys.filter(bool), st.data())
def test_one_changed_bit_shows(some, data):
    """One bit of one key changes it, be it one whose change the sum carries on."""
    place, bit = data.draw(st.integers(0, len(some) - 1)), data.draw(st.integers(0, 127))
    changed = (int.from_bytes(some[place], "little") ^ 1 << bit).to_bytes(16, "little")
    assert fingerprint(some) != fingerprint([*some[:place], changed, *some[place + 1 :]])


@given(keys.filter(bool))
def test_how_often_a_key_comes_shows(some):
    """A row more shows, also one that repeats another."""
    assert fingerprint(some) != fingerprint([*some, some[0]])


def test_it_never_changes():
    """A plan that was approved is found again by a later version."""
    some = message_keys(["27821234567", "27821234568"], ["Hi", "Hi"])
    assert (fingerprint([]), fingerprint(some)) == ("0fe96dba0648", "66d1552ffcd7")


def test_many_keys_have_many():
    """Of ten thousand tables no two have one fingerprint, though a single bit tells them apart."""
    shuffler = random.Random(4711)
    some = [shuffler.randbytes(16) for _ in range(3)]
    found = {fingerprint([*some, number.to_bytes(16, "big")]) for number in range(10_000)}
    assert len(found) == 10_000
    assert {len(digest) for digest in found} == {12}


NUMBERS, TEXTS, KEYS = ("27820000000", "27820000001"), ("Hi", "You"), (b"k" * 16, b"l" * 16)


def prepared(destinations=NUMBERS, contents=TEXTS, keys=KEYS, **others):
    columns = [column if isinstance(column, pa.Array) else pa.array(column) for column in (destinations, contents)]
    fields = {"num_rows": 3, "row_column": np.array([0, 2]), "rejected": [], "rejected_numbers": [], **others}
    return PreparedBatch(destination_column=columns[0], content_column=columns[1], keys=list(keys), **fields)


def test_where_values_lie_does_not_matter():
    """Columns that are parts of larger ones, of which some values are null, have the digest of the values."""
    parts = [pa.array([None, *values, "x"]).slice(1, 2) for values in (NUMBERS, TEXTS)]
    assert batch_digest(prepared()) == batch_digest(prepared(*parts))


def test_a_batch_without_messages_has_a_digest():
    """Where no row can be texted, the count of rows makes it."""
    none = [column.slice(0, 0) for column in (pa.array([], pa.string()), pa.array(["x"]))]
    assert batch_digest(prepared(*none, ())) == batch_digest(prepared(*none[::-1], ()))


@pytest.mark.parametrize(
    "change",
    [
        {"destinations": ("27820000000", "27820000002")},
        {"contents": ("Hi", "Yous")},
        {"contents": ("HiY", "ou")},
        {"contents": ("You", "Hi")},
        {"keys": (b"l" * 16, b"k" * 16)},
        {"row_column": np.array([0, 1])},
        {"num_rows": 4},
    ],
)
def test_everything_of_a_batch_is_in_its_digest(change):
    """Another number, text, key, row or count of rows, and another order, make another digest."""
    assert batch_digest(prepared()) != batch_digest(prepared(**change))
