from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.keys import message_keys

from airflow_provider_sms.messages.keys import Fingerprint, canonical, group_key

NUMBER = "27821234567"


def at(*parts):
    """Make a time without a zone, as tables hold them."""
    return dt.datetime(*parts)  # noqa: DTZ001 - without a zone is what is meant


def keys_of(*columns):
    """Make the keys of rows that have one destination and these key columns."""
    rows = len(columns[0])
    return message_keys([NUMBER] * rows, [""] * rows, list(columns))


DESTINATIONS = ["2782123", NUMBER, "999999999999999", NUMBER]
TEXTS = ["", "Hi José 😀\n", "x" * 300, "a\0b:1"]
GOLDEN = [
    (None, ["348d7a9a8297626447b1d70b4966ee92", "bc4421b4923b8a0dd81aef1b6abb684d",
            "e42460c8eb8315cc8cedfd8747b19cd8", "928e5d96667838576fcc367b39fb14eb"]),
    ([pa.array([1.5, None, 2, 3]), pa.array(TEXTS)],
     ["b89ad14c848788bb0b3d9b04139af1a0", "538abcff35537232772a7f6aa114ac03",
      "750eccd8780134e13a15bc1394dd1b09", "f274f12270bc86b3bc4526298167d178"]),
    ([], ["79fc672c34ebe6685d0161338a4504e6", "a479c086fb87676735ab14f0eefab664",
          "5bf8a2ca3185e6f144a297a017d1b0a6", "a479c086fb87676735ab14f0eefab664"]),
]  # fmt: skip


@pytest.mark.parametrize(("key_values", "expected"), GOLDEN, ids=["text", "columns", "destination"])
def test_keys_never_change_however_they_are_made(key_values, expected):
    """The digests are those that stand in ledgers, for destinations of one length and of several."""
    assert expected == [key.hex() for key in message_keys(DESTINATIONS, TEXTS, key_values)]
    alike = key_values and [column[1::2] if len(column) else column for column in key_values]
    assert expected[1::2] == [key.hex() for key in message_keys(DESTINATIONS[1::2], TEXTS[1::2], alike)]


texts = st.one_of(st.none(), st.text(st.sampled_from("1:-a€"), max_size=4))


@given(st.tuples(texts, texts), st.tuples(texts, texts))
def test_key_values_do_not_run_together(one, other):
    """Two rows have one key only if each of their key values is the same, null included."""
    columns = [pa.array(column, pa.string()) for column in zip(one, other, strict=True)]
    first, second = keys_of(*columns)
    assert (one == other) == (first == second)


def test_key_columns_identify_a_message():
    """Their values do, and neither does the text nor one that reads like them; without any, the destination does."""
    first = message_keys([NUMBER], ["Hi"], [pa.array([5])])
    assert first == message_keys([NUMBER], ["Ho"], [pa.array([5])])
    others = ([pa.array([2])], [pa.array([5]), pa.array([""])], [pa.array([None], pa.string())], [])
    assert len({*first, *(key for values in others for key in message_keys([NUMBER], ["Hi"], values))}) == 5
    assert message_keys([NUMBER], ["1:5"]) != first
    assert message_keys([NUMBER] * 2, ["Hi", "Ho"], []) == message_keys([NUMBER], ["Hi"], []) * 2
    assert message_keys([], []) == message_keys([], [], [pa.array([], pa.int64())]) == []


FINE = ("ms", "us", "ns")
ALIKE = {
    "1": [
        pa.array([1], pa.int8()), pa.array([1]), pa.array([1], pa.uint64()), pa.array([1.0]),
        pa.array([1], pa.float32()), pa.array([Decimal(1)]), pa.array([Decimal("1.00")]), pa.array(["1"]),
        pa.array(["1.0"]), pa.array(["1.00"]), pa.array([1]).dictionary_encode(),
    ],
    "0": [
        pa.array([0]), pa.array([0.0]), pa.array([-0.0]), pa.array([-0.0], pa.float32()), pa.array([Decimal("0.00")]),
        pa.array([Decimal("-0.0")]), *(pa.array([text]) for text in ("-0", "-0.00", "-0e+05", "-0E-07", "0.0")),
    ],
    "100": [pa.array([100]), pa.array([Decimal(100)])],
    "1000": [pa.array(["1E+3"])],
    "1000000": [pa.array([1000000]), pa.array([1e6]), pa.array([Decimal("1E+6")])],
    "1" + "0" * 300: [pa.array([1e300])],
    "-1500": [pa.array([-1500]), pa.array([-1500.0]), pa.array([Decimal("-1500.0")])],
    f"{2**53 - 1}": [pa.array([2**53 - 1]), pa.array([float(2**53 - 1)])],
    "1.5": [pa.array([1.5]), pa.array([1.5], pa.float32()), pa.array([Decimal("1.50")]), pa.array(["1.50"])],
    "0.1": [pa.array([0.1]), pa.array([0.1], pa.float32()), pa.array([Decimal("0.10")]), pa.array(["0.1"])],
    "12.34": [pa.array([Decimal("12.3400")])],
    "0.0000001": [pa.array([1e-7]), pa.array([Decimal("0.00000010")])],
    "0.00001": [pa.array(["1e-05"])],
    **{text: [pa.array([text])] for text in ("007", "007.0", "1e5", "+5", "1.2.3", "9" * 40, "TRUE")},
    None: [
        pa.array([None], pa.int64()), pa.array([None], pa.float64()), pa.array([float("nan")]), pa.nulls(1),
        pa.array([None], pa.string()), pa.array([None], pa.timestamp("us")),
    ],
    "true": [pa.array([True]), pa.array([True]).dictionary_encode(), pa.array(["True"])],
    "a": [pa.array(["a"]), pa.chunked_array([["a"]])],
    "\u00e9": [
        pa.array(["\u00e9"]), pa.array(["\u00e9"], pa.large_string()), pa.array(["\u00e9"]).dictionary_encode(),
        pa.array(["e\u0301"]),
    ],
    "INV-1": [pa.array([" INV-1\u00a0"])],
    "01ff": [pa.array([b"\x01\xff"], kind) for kind in (pa.binary(), pa.large_binary(), pa.binary(2))],
    str(uuid.UUID(int=7)): [pa.array([uuid.UUID(int=7).bytes], pa.uuid()), pa.array([str(uuid.UUID(int=7))])],
    "2025-03-01": [
        pa.array([at(2025, 3, 1)], pa.timestamp("s")), pa.array([at(2025, 3, 1)], pa.timestamp("ns")),
        pa.array([dt.date(2025, 3, 1)]), pa.array([dt.date(2025, 3, 1)], pa.date64()), pa.array(["2025-03-01"]),
        pa.array(["2025-03-01 00:00:00"]),
    ],
    "2025-03-01Z": [pa.array([at(2025, 3, 1)], pa.timestamp("us", "UTC"))],
    "2025-03-01 09:30:20": [pa.array([at(2025, 3, 1, 9, 30, 20)], pa.timestamp(unit)) for unit in ("s", *FINE)],
    "2025-03-01 09:30:00.5": [pa.array([at(2025, 3, 1, 9, 30, 0, 500000)], pa.timestamp(unit)) for unit in FINE],
    "2025-03-10 10:20:00.00012": [pa.array([at(2025, 3, 10, 10, 20, 0, 120)], pa.timestamp("us"))],
    "2025-03-10 10:20:00.12": [pa.array(["2025-03-10T10:20:00.120"])],
    "2025-03-01 10:00:00Z": [
        pa.array([at(2025, 3, 1, 10)], pa.timestamp("s", "UTC")),
        pa.array([at(2025, 3, 1, 10)], pa.timestamp("ns", "Europe/Paris")), pa.array(["2025-03-01 12:00:00+02:00"]),
    ],
    "2025-13-10 10:00:00": [pa.array(["2025-13-10 10:00:00"])],
    "00:00:00": [pa.array([dt.time(0, 0)])],
    "09:30:00": [pa.array([dt.time(9, 30)], pa.time32("s")), pa.array([dt.time(9, 30)], pa.time64("ns"))],
    "09:30:00.5": [pa.array(["09:30:00.50"])],
}  # fmt: skip


@pytest.mark.parametrize("text", ALIKE)
def test_a_value_has_one_form_however_it_is_stored(text):
    """In whichever width, unit, encoding or format a table is stored next time, the documented form is digested."""
    assert [canonical(column).to_pylist() for column in ALIKE[text]] == [[text]] * len(ALIKE[text])


def test_the_key_of_a_text_to_groups():
    """It is frozen; order, repeats and the storing of accents do not matter, and no name runs into another."""
    assert group_key("All hands", ["staff"]).hex() == "e69396224ee2d02079d88afbe166a730"
    assert group_key("Hi", ["a", "b"]) == group_key("Hi", ["b", "a", "b"])
    assert group_key("Hi", ["Jos\u00e9"]) == group_key("Hi", ["Jose\u0301"])
    several = [("Hi", ["a"]), ("Ho", ["a"]), ("Hi", ["a", "b"]), ("Hi", ['a", "b']), ('a"], "Hi', [])]
    assert len({group_key(*each) for each in several}) == len(several)


# Fingerprints


lists_of_keys = st.lists(st.binary(min_size=16, max_size=16))


def fingerprint(*batches):
    found = Fingerprint()
    for batch in batches:
        found.add(b"".join(batch))
    return found.hexdigest()


@given(lists_of_keys, st.randoms(use_true_random=False), st.integers(0, 5))
def test_a_fingerprint_does_not_depend_on_the_order(some, shuffler, cut):
    """A table that is sorted another way, or read in other batches, has the same fingerprint."""
    shuffled = shuffler.sample(some, len(some))
    assert fingerprint(some) == fingerprint(shuffled[:cut], shuffled[cut:])


digests = st.lists(st.integers(0, 5).map(str)).map(lambda texts: message_keys(["27821234567"] * len(texts), texts))


@given(digests, digests)
def test_other_keys_have_another_fingerprint(some, others):
    """Any difference between tables of messages shows: one more, less, twice or another."""
    assert (sorted(some) == sorted(others)) == (fingerprint(some) == fingerprint(others))


def test_a_fingerprint_never_changes():
    """A plan that was approved is found again by a later version."""
    some = message_keys(["27821234567", "27821234568"], ["Hi", "Hi"])
    assert (fingerprint([]), fingerprint(some)) == ("0fe96dba0648", "71f14c0b3269")
