from __future__ import annotations

import pyarrow as pa
import pytest

from airflow_provider_sms.exceptions import ColumnError, InvalidRowsError, StoppedError
from airflow_provider_sms.messages.prepare import Preparation
from airflow_provider_sms.planning import scan as scan_module
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.planning.scan import Scan, outgoing_blocks
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.stop_flag import StopFlag


def table_of(*destinations):
    return pa.table({"destination": pa.array(destinations, pa.string())})


def scanned(source, preparation=None, **how):
    scan = Scan(Prices())
    scan.read(source, preparation or Preparation("Hi", None, **how), StopFlag())
    return scan


def test_every_row_is_looked_at():
    """Rows, invalid rows and their reasons are counted over all batches."""
    scan = scanned(open_source(table_of(*["27820000000"] * 25_000, None, "x", None)))
    assert (scan.rows, scan.invalid, sum(scan.reasons.values())) == (25_003, 3, 3)
    assert [example.row for example in scan.examples] == [25_000, 25_001, 25_002]


def test_few_of_many_invalid_rows_are_kept():
    """A table without one good row costs no memory: only the first are remembered."""
    scan = scanned(open_source(table_of(*["x"] * 30_000)))
    assert (scan.invalid, len(scan.examples)) == (30_000, 10)
    first, *lines, more = scan.explain_invalid("Nothing was sent").splitlines()
    assert first.startswith("30000 of 30000 rows cannot be texted: 30000 times ")
    assert first.endswith(". Nothing was sent. Rows count from 0:")
    assert [line.partition(":")[0] for line in lines] == [f"  row {row}, column destination" for row in range(10)]
    assert more == "  and 29990 more"


def test_one_invalid_row_is_said_in_the_singular():
    """Neither its count nor its reason is a plural, and no others are left out."""
    words = scanned(open_source(table_of("x"))).explain_invalid()
    assert words.startswith("1 of 1 row cannot be texted: 1 time ")
    assert (len(words.splitlines()), " more" in words) == (2, False)


def test_the_explanation_masks_numbers():
    """It says how many rows, why and which, and shows no number."""
    scan = scanned(open_source(table_of("27820000000", "2782123456789012345")))
    words = scan.explain_invalid()
    assert "1 of 2 rows cannot be texted" in words
    assert "row 1, column destination" in words
    assert ("2782123456789012345" in words, "2782*****45" in words) == (False, True)


def test_a_missing_column_is_named_before_any_row_is_read():
    """The error lists the columns that there are."""
    with pytest.raises(ColumnError, match="phone"):
        scanned(open_source(pa.table({"phone": ["27820000000"]})))


def test_invalid_rows_stop_everything_or_are_left_out():
    """By default one invalid row is too many; asked for, invalid rows are left out, but not all of them."""
    mixed, bad = scanned(open_source(table_of("27820000000", None))), scanned(open_source(table_of(None)))
    with pytest.raises(InvalidRowsError, match="on_invalid='skip'"):
        mixed.require_sendable(skip_invalid=False)
    mixed.require_sendable(skip_invalid=True)
    with pytest.raises(InvalidRowsError, match="no row is valid"):
        bad.require_sendable(skip_invalid=True)


def test_a_scan_can_be_stopped():
    """Told to stop, a task does not read a long table to its end."""
    stop = StopFlag()
    stop.set()
    with pytest.raises(StoppedError, match="nothing was sent"):
        Scan(Prices()).read(open_source(table_of("27820000000")), Preparation("Hi", None), stop)


def test_blocks_are_the_valid_rows():
    """What is sent are the rows that were found valid, in source order."""
    scan = scanned(open_source(table_of("27820000000", None, "27820000001")))
    blocks = list(outgoing_blocks(scan.spool, StopFlag()))
    assert [(m.destination, m.content) for block in blocks for m in block.messages(0, 10)] == [
        ("27820000000", "Hi"),
        ("27820000001", "Hi"),
    ]


def many(count, message="Hi {n}"):
    numbers = [str(27_820_000_000 + (n * 7919) % count) for n in range(count)]
    source = open_source(pa.table({"destination": numbers, "n": list(range(count))}))
    return source, Preparation(message, None)


def keys_of(block):
    return block.keys(0, len(block))


@pytest.fixture
def small_blocks(monkeypatch):
    """Shrink the bounds: a test of the real ones would take long."""
    monkeypatch.setattr("airflow_provider_sms.recipients.batches.BATCH_ROWS", 100)
    monkeypatch.setattr(scan_module, "BLOCK_ROWS", 100)
    monkeypatch.setattr(scan_module, "MAX_BLOCK_ROWS", 400)


def test_a_short_table_keeps_its_order():
    """As long as the ledger is small, rows go out as they come."""
    (block,) = outgoing_blocks(scanned(*many(2000)).spool, StopFlag())
    assert [message.row for message in block.messages(0, 2000)] == list(range(2000))


def test_a_long_table_comes_in_blocks_by_key(small_blocks):
    """Beyond the first rows, a claim is of neighbours: in blocks that grow up to a bound, ordered by key."""
    blocks = list(outgoing_blocks(scanned(*many(3000)).spool, StopFlag()))
    assert [message.row for message in blocks[0].messages(0, 100)] == list(range(100))
    assert all(keys_of(block) == sorted(keys_of(block)) for block in blocks[1:])
    sizes = [len(block) for block in blocks]
    assert (sizes[0], max(sizes), sizes[:-1]) == (100, 400, sorted(sizes[:-1]))
    assert sorted(m.row for block in blocks for m in block.messages(0, 400)) == list(range(3000))
    assert [block.until for block in blocks] == [sum(sizes[: n + 1]) for n in range(len(sizes))]


def test_a_long_table_can_keep_its_order(small_blocks):
    """Where the order is wanted, every block has it."""
    blocks = outgoing_blocks(scanned(*many(1000)).spool, StopFlag(), keep_order=True)
    assert [m.row for block in blocks for m in block.messages(0, 1000)] == list(range(1000))


def test_a_task_that_is_to_stop_gathers_no_large_block(small_blocks):
    """Told to stop, what is read is handed over at once: it is only looked up for the counts, and time is short."""
    stop = StopFlag()
    blocks = outgoing_blocks(scanned(*many(3000)).spool, stop)
    for _ in range(8):
        assert len(next(blocks)) >= 100
    stop.set()
    assert {len(block) for block in blocks} == {100}


def test_long_texts_make_smaller_blocks(small_blocks, monkeypatch):
    """A block is bounded by the bytes of its texts, too."""
    monkeypatch.setattr(scan_module, "MAX_BLOCK_BYTES", 1000)
    blocks = list(outgoing_blocks(scanned(*many(3000)).spool, StopFlag()))
    assert {len(block) for block in blocks} == {100}
