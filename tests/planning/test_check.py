from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.composed import composed
from support.keys import request_of
from support.planning import checked, number, texted
from support.sending import close, people

from airflow_provider_sms.exceptions import StoppedError
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN
from airflow_provider_sms.messages import spool
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.planning.check import CheckedTable
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.stop_flag import StopFlag


def statuses(table):
    return [Status(each) for each in table.spool.statuses.tolist()]


def keys_of(rows):
    """Return the keys of the rows of such a table."""
    return composed(Composer(None, "text"), rows.combine_chunks().to_batches()[0]).keys


def test_a_source_is_read_once():
    """One pass checks, plans and keeps the rows: a source that can be read only once is enough, and is used up."""
    read = []

    def rows():
        for n in range(25_000):
            read.append(n)
            yield {"destination": number(n % 20_000), "text": "Hi"}

    table = checked(rows())
    assert (len(read), table.to_send, table.counts[Status.DUPLICATE]) == (25_000, 20_000, 5_000)
    assert sum(len(some.statuses) for some in table.spool.batches()) == 25_000


@pytest.mark.parametrize("at_once", [3, 1000])
@given(st.lists(st.sampled_from("abcdefg"), max_size=40), st.integers(1, 12))
def test_the_first_row_of_a_message_is_no_duplicate(at_once, names, batch):
    """Every later one is, however many, in whichever batch, and however few keys are compared at a time."""
    rows = pa.table({"destination": [number(ord(name)) for name in names], "text": pa.array(["Hi"] * len(names))})
    pieces = pa.concat_tables([rows[start : start + batch] for start in range(0, len(rows), batch)] or [rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "_KEYS_AT_ONCE", at_once)
        found = statuses(checked(pieces))
    expected = [Status.DUPLICATE if name in names[:place] else Status.FREE for place, name in enumerate(names)]
    assert found == expected


@pytest.mark.parametrize("resends", [False, True])
def test_every_row_has_one_status(enter, resends):
    """What is in the way of a row decides, in this order: its faults, an earlier row, the list, who holds its key.

    Another campaign holds nothing. Where unknown messages are resent, those of a lost request are to be sent, and no
    claim that is open. A person on the list gets nothing more; what this very attempt sent before they opted out was
    sent.
    """
    people, listed = list(map(number, range(7))), list(map(number, range(10, 17)))
    keys = keys_of(texted([*people, *listed]))
    mine = enter(2)
    ledgers = enter(1), enter(1), enter(1), enter(1), enter(1, campaign="other"), mine
    states = ACCEPTED, UNKNOWN, None, UNKNOWN, ACCEPTED, ACCEPTED
    for place, (ledger, state) in enumerate(zip(ledgers, states, strict=True)):
        (claim,) = ledger.commit(chunks=[request_of([keys[place], keys[place + 7]], [None] * 2)], claim_seconds=60.0)
        if state is not None:
            close(ledger, claim.request_id, state)
        if place == 3:
            mine.supersede([claim.request_id])
    rows = texted([*people, *listed, number(6), "x", number(10)])
    table = checked(rows, campaign=mine, suppress=texted(listed), resends=resends)
    lost = "AGAIN" if resends else "UNKNOWN"
    found = [status.name for status in statuses(table)]
    assert found == [
        *("ALREADY_SENT", lost, "UNKNOWN", "AGAIN", "FREE", "ACCEPTED", "FREE"),
        *(*["SUPPRESSED"] * 5, "ACCEPTED", "SUPPRESSED"),
        *("DUPLICATE", "INVALID", "DUPLICATE"),
    ]
    assert {status.name: count for status, count in table.counts.items()} == Counter(found)
    assert (table.to_send, table.estimate.parts, len(table.held_by)) == (3 + resends, 3 + resends, 2)


@pytest.mark.parametrize(
    ("column", "end"),
    [
        (pa.array(["+27 82 123 4567 x"]), " (2782*****67)"),
        (pa.array(["  "]), ": no number"),
        (pa.array([-27821234567]), " (2782*****67)"),
        (pa.array([12]), " (*****)"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_the_explanation_masks_numbers(column, end):
    """The number of an invalid row shows its first four and last two digits; none where another column is to blame."""
    table = checked(pa.table({"destination": column}), message="Hi")
    assert table.invalid.in_words().endswith(end)
    table = checked(pa.table({"destination": [number(1)], "text": pa.nulls(1, pa.string())}))
    assert table.invalid.examples == ["row 0, column text: no value"]


def test_a_check_can_be_stopped():
    """Told to stop, a task neither reads a long table to its end, nor decides it."""
    stop, running = StopFlag(), StopFlag()
    stop.set()
    with pytest.raises(StoppedError, match="nothing was sent"):
        CheckedTable(Composer("Hi", None), Prices()).read(open_source(ROWS), stop)
    table = CheckedTable(Composer("Hi", None), Prices())
    table.read(open_source(ROWS), running)
    with pytest.raises(StoppedError, match="nothing was sent"):
        table.decide(stop)


ROWS = [{"destination": each.destination, "text": "Hi"} for each in people(5)]
