from __future__ import annotations

import datetime as dt
import random
import uuid
from decimal import Decimal
from hashlib import blake2b

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


def test_keys_never_change():
    """The digests are a contract with every ledger ever written: these values may not change."""
    by_text = message_keys([NUMBER], ["Hi Thandi"])[0].hex()
    by_columns = message_keys([NUMBER], ["Hi"], [pa.array([1]), pa.array(["a"]), pa.array([None], pa.string())])[
        0
    ].hex()
    by_destination = message_keys([NUMBER], ["Hi"], [])[0].hex()
    expected = (
        "ce29dc4959b88c5d3ccc53a0173dd1a7",
        "59006904087792e64ce05b1942216818",
        "a479c086fb87676735ab14f0eefab664",
    )
    assert expected == (by_text, by_columns, by_destination)


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


messages = st.lists(st.tuples(st.from_regex(r"[0-9]{7,15}", fullmatch=True), st.text()))


@given(messages)
def test_a_key_digests_the_length_of_the_number_the_number_and_the_text(rows):
    """Keys of columns are those of one message after the other, written out."""
    expected = [
        blake2b(f"{len(number)}:{number}{text}".encode(), digest_size=16, person=b"sms: text").digest()
        for number, text in rows
    ]
    assert expected == message_keys([row[0] for row in rows], [row[1] for row in rows])


def test_a_key_is_sixteen_bytes():
    """A key has the size of the ledger's column."""
    assert [len(key) for key in message_keys([NUMBER], [""])] == [16]


def test_text_identifies_a_message():
    """Without key columns, one text to one number is one message, and any other is another."""
    keys = message_keys([NUMBER, NUMBER, NUMBER, "27821234568"], ["Hi", "Hi", "Ho", "Hi"])
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_key_columns_identify_a_message():
    """With key columns, their values do, and the text does not matter."""
    first = message_keys([NUMBER], ["Hi"], [pa.array([1])])
    assert first == message_keys([NUMBER], ["Ho"], [pa.array([1])])
    assert first != message_keys([NUMBER], ["Hi"], [pa.array([2])])


def test_no_key_columns_leave_the_destination():
    """An empty list of key columns means one message to each number, whatever its text."""
    first, second = message_keys([NUMBER, NUMBER], ["Hi", "Ho"], [])
    assert first == second


def test_the_two_kinds_of_keys_are_apart():
    """A text that reads like an encoded key value is not taken for it."""
    assert message_keys([NUMBER], ["1:5"]) != message_keys([NUMBER], [""], [pa.array([5])])


@given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
def test_destination_and_text_do_not_run_together(one, other):
    """Two messages have one key only if both their destinations and their texts are the same."""
    first, second = message_keys([one[0], other[0]], [one[1], other[1]])
    assert (one == other) == (first == second)


texts = st.one_of(st.none(), st.text(st.sampled_from("1:-a€"), max_size=4))


@given(st.tuples(texts, texts), st.tuples(texts, texts))
def test_key_values_do_not_run_together(one, other):
    """Two rows have one key only if each of their key values is the same, null included."""
    columns = [pa.array(column, pa.string()) for column in zip(one, other, strict=True)]
    first, second = keys_of(*columns)
    assert (one == other) == (first == second)


def test_more_columns_are_other_keys():
    """A key column more gives other keys, also where it is empty."""
    assert keys_of(pa.array(["a"])) != keys_of(pa.array(["a"]), pa.array([""]))


def test_null_is_a_value():
    """Null is neither the empty text nor the word."""
    assert len(set(keys_of(pa.array([None, "", "-", "null", "None", "0:"])))) == 6


ALIKE = [
    [pa.array([1], pa.int8()), pa.array([1]), pa.array([1], pa.uint64()), pa.array([1.0]), pa.array([1], pa.float32()),
     pa.array([Decimal(1)]), pa.array([Decimal("1.00")]), pa.array(["1"]), pa.array(["1.0"]), pa.array(["1.00"]),
     pa.array([1]).dictionary_encode()],
    [pa.array([0]), pa.array([0.0]), pa.array([-0.0]), pa.array([Decimal("0.00")]), pa.array([Decimal("-0.0")])],
    [pa.array([1000000]), pa.array([1e6]), pa.array([Decimal("1E+6")])],
    [pa.array([-1500]), pa.array([-1500.0]), pa.array([Decimal("-1500.0")])],
    [pa.array([2**53 - 1]), pa.array([float(2**53 - 1)])],
    [pa.array([1.5]), pa.array([1.5], pa.float32()), pa.array([Decimal("1.50")]), pa.array(["1.50"])],
    [pa.array([0.1]), pa.array([0.1], pa.float32()), pa.array([Decimal("0.10")]), pa.array(["0.1"])],
    [pa.array([1e-7]), pa.array([Decimal("0.00000010")])],
    [pa.array(["é"]), pa.array(["é"], pa.large_string()), pa.array(["é"]).dictionary_encode()],
    [pa.array([None], pa.int64()), pa.array([None], pa.float64()), pa.array([float("nan")]), pa.nulls(1),
     pa.array([None], pa.string()), pa.array([None], pa.timestamp("us"))],
    [pa.array([at(2025, 3, 1, 9, 30, 20)], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")],
    [pa.array([at(2025, 3, 1, 9, 30, 0, 500000)], pa.timestamp(unit)) for unit in ("ms", "us", "ns")],
    [pa.array([at(2025, 3, 1)], pa.timestamp("s")), pa.array([at(2025, 3, 1)], pa.timestamp("ns")),
     pa.array([dt.date(2025, 3, 1)]), pa.array([dt.date(2025, 3, 1)], pa.date64()), pa.array(["2025-03-01"])],
    [pa.array([at(2025, 3, 1, 10)], pa.timestamp("s", "UTC")),
     pa.array([at(2025, 3, 1, 10)], pa.timestamp("ns", "Europe/Paris")), pa.array(["2025-03-01 11:00:00+01:00"])],
    [pa.array([dt.time(9, 30)], pa.time32("s")), pa.array([dt.time(9, 30)], pa.time64("ns"))],
    [pa.array([b"\x01\xff"]), pa.array([b"\x01\xff"], pa.large_binary()), pa.array([b"\x01\xff"], pa.binary(2))],
    [pa.array([True]), pa.array([True]).dictionary_encode(), pa.array(["True"])],
    [pa.array(["a"]), pa.chunked_array([["a"]])],
]  # fmt: skip


@pytest.mark.parametrize("columns", ALIKE, ids=lambda columns: str(columns[0].type))
def test_a_new_export_gives_the_same_keys(columns):
    """A value keeps its key in whichever width, unit or encoding the table is stored next time."""
    keys = {keys_of(column)[0] for column in columns}
    assert len(keys) == 1


def test_different_values_are_apart():
    """What differs as a value differs as a key, over all examples."""
    assert len(ALIKE) == len({keys_of(columns[0])[0] for columns in ALIKE})


def test_an_integer_column_that_became_float():
    """A null that appears in an integer column makes it float on its way through pandas; the keys stay."""
    before = keys_of(pa.array([1, 2, None, 20000000000]))
    assert before == keys_of(pa.array([1.0, 2.0, float("nan"), 20000000000.0]))


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([1.0]), "1"),
        (pa.array([0.1]), "0.1"),
        (pa.array([1e300]), "1" + "0" * 300),
        (pa.array([Decimal("12.3400")]), "12.34"),
        (pa.array([100]), "100"),
        (pa.array([Decimal(100)]), "100"),
        (pa.array(["1.0"]), "1"),
        (pa.array(["12.50"]), "12.5"),
        (pa.array(["-0.00"]), "0"),
        (pa.array(["1e-05"]), "0.00001"),
        (pa.array(["1E+3"]), "1000"),
        (pa.array(["007"]), "007"),
        (pa.array(["007.0"]), "007.0"),
        (pa.array(["1e5"]), "1e5"),
        (pa.array(["+5"]), "+5"),
        (pa.array(["1.2.3"]), "1.2.3"),
        (pa.array(["9" * 40]), "9" * 40),
        (pa.array(["True"]), "true"),
        (pa.array(["TRUE"]), "TRUE"),
        (pa.array(["2025-03-10 00:00:00"]), "2025-03-10"),
        (pa.array(["2025-03-10T10:20:00.120"]), "2025-03-10 10:20:00.12"),
        (pa.array(["2025-03-10 10:00:00+02:00"]), "2025-03-10 08:00:00Z"),
        (pa.array(["2025-13-10 10:00:00"]), "2025-13-10 10:00:00"),
        (pa.array(["09:30:00.50"]), "09:30:00.5"),
        (pa.array([0.1], pa.float32()), "0.1"),
        (pa.array([" INV-1\u00a0"]), "INV-1"),
        (pa.array(["Jose\u0301"]), "Jos\u00e9"),
        (pa.array([True]), "true"),
        (pa.array([at(2025, 3, 10, 10, 20, 30)], pa.timestamp("ns")), "2025-03-10 10:20:30"),
        (pa.array([at(2025, 3, 10, 10, 20, 0, 120)], pa.timestamp("us")), "2025-03-10 10:20:00.00012"),
        (pa.array([at(2025, 3, 10, 10)], pa.timestamp("us", "Europe/Paris")), "2025-03-10 10:00:00Z"),
        (pa.array([at(2025, 3, 10)], pa.timestamp("us", "UTC")), "2025-03-10Z"),
        (pa.array([dt.time(0, 0)]), "00:00:00"),
        (pa.array([dt.date(2025, 3, 10)]), "2025-03-10"),
        (pa.array([b"\x00\xff"]), "00ff"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_the_canonical_form(column, text):
    """The form that is digested is the one that is documented."""
    assert [text] == canonical(column).to_pylist()


def test_uuids_are_keys():
    """A column of UUIDs can be a key: of a type of their own, or of 16 bytes, as an older pyarrow reads them."""
    value = uuid.UUID("12345678-1234-5678-1234-567812345678")
    column = pa.array([value.bytes], pa.uuid() if hasattr(pa, "uuid") else pa.binary(16))
    assert canonical(column).to_pylist() == [value.hex]


def test_no_messages_have_no_keys():
    """No messages, no keys, of either kind."""
    assert message_keys([], []) == message_keys([], [], [pa.array([], pa.int64())]) == []


def test_the_order_and_repeats_of_groups_do_not_matter():
    """The same text to the same groups is the same message."""
    assert group_key("Hi", ["a", "b"]) == group_key("Hi", ["b", "a", "b"])


def test_text_and_groups_cannot_run_together():
    """Another text, other groups, or a group whose name holds another's are other messages."""
    keys = {
        group_key("Hi", ["a"]),
        group_key("Ho", ["a"]),
        group_key("Hi", ["a", "b"]),
        group_key("Hi", ['a", "b']),
        group_key('a"], "Hi', []),
    }
    assert {len(key) for key in keys} == {16}
    assert len(keys) == 5


def test_keys_stay_what_they_are():
    """A change of the key texts every group again: it is frozen."""
    assert group_key("All hands", ["staff"]).hex() == "e69396224ee2d02079d88afbe166a730"


def test_an_accent_has_one_key_however_it_is_stored():
    """Composed or not, a name that looks the same is the same group."""
    assert group_key("Hi", ["Jos\u00e9"]) == group_key("Hi", ["Jose\u0301"])


# Fingerprints and digests of batches


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


@given(lists_of_keys.filter(bool), st.data())
def test_one_changed_bit_shows_in_the_fingerprint(some, data):
    """One bit of one key changes it, be it one whose change the sum carries on."""
    place, bit = data.draw(st.integers(0, len(some) - 1)), data.draw(st.integers(0, 127))
    changed = (int.from_bytes(some[place], "little") ^ 1 << bit).to_bytes(16, "little")
    assert fingerprint(some) != fingerprint([*some[:place], changed, *some[place + 1 :]])


@given(lists_of_keys.filter(bool))
def test_how_often_a_key_comes_shows_in_the_fingerprint(some):
    """A row more shows, also one that repeats another."""
    assert fingerprint(some) != fingerprint([*some, some[0]])


def test_a_fingerprint_never_changes():
    """A plan that was approved is found again by a later version."""
    some = message_keys(["27821234567", "27821234568"], ["Hi", "Hi"])
    assert (fingerprint([]), fingerprint(some)) == ("0fe96dba0648", "66d1552ffcd7")


def test_many_tables_have_as_many_fingerprints():
    """Of ten thousand tables no two have one fingerprint, though a single bit tells them apart."""
    shuffler = random.Random(4711)
    some = [shuffler.randbytes(16) for _ in range(3)]
    found = {fingerprint([*some, number.to_bytes(16, "big")]) for number in range(10_000)}
    assert len(found) == 10_000
    assert {len(digest) for digest in found} == {12}
