from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.composed import composed
from support.keys import request_of
from support.planning import checked, number, texted
from support.sending import claimant, close, people

from airflow_provider_sms.exceptions import StoppedError
from airflow_provider_sms.ledger.holders import CampaignReader, Held
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, UNKNOWN, Holder
from airflow_provider_sms.messages import spool
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.messages.keys import key_list
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.planning.check import CheckedTable
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.stop_flag import StopFlag


def statuses(table):
    return [Status(each) for each in table.spool.statuses.tolist()]


def keys_of(rows, key_columns=None):
    """Return the keys of the rows of such a table."""
    return composed(Composer(None, "text", key_columns=key_columns), rows.combine_chunks().to_batches()[0]).keys


HOLDERS = {
    Status.ALREADY_SENT: Holder(1, ACCEPTED),
    Status.UNKNOWN: Holder(2, CLAIMED),
    Status.ACCEPTED: Holder(3, ACCEPTED, mine=True),
}


class Campaign:
    """What a ledger would say: some messages are held."""

    def __init__(self, held):
        self._held = held

    def is_used(self):
        return True

    def has_others(self):
        return False

    def look(self, keys):
        found = [self._held.get(key, Status.FREE) for key in key_list(keys)]
        ids = [HOLDERS[each].request_id if each in HOLDERS else 0 for each in found]
        requests = {each.request_id: each for each in HOLDERS.values()}
        return Held(np.array(ids), requests, np.array([each == Status.AGAIN for each in found]))


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


def test_every_row_has_one_status():
    """What is in the way of a row decides, in this order: its faults, an earlier row, the list, who holds its key."""
    rows = pa.concat_tables([texted([*map(number, range(6))]), texted([number(1), "x", number(0)])])
    found = (Status.ALREADY_SENT, Status.UNKNOWN, Status.AGAIN, Status.ACCEPTED)
    held = dict(zip(keys_of(rows[:4]), found, strict=True))
    table = checked(rows, campaign=Campaign(held), suppress=texted([number(4)]))
    assert [status.name for status in statuses(table)] == [
        *("ALREADY_SENT", "UNKNOWN", "AGAIN", "ACCEPTED", "SUPPRESSED", "FREE"),
        *("DUPLICATE", "INVALID", "DUPLICATE"),
    ]
    assert table.counts == {**dict.fromkeys(Status, 1), Status.DUPLICATE: 2}
    assert (table.to_send, table.estimate.parts) == (2, 2)


@pytest.mark.parametrize("status", [Status.ALREADY_SENT, Status.UNKNOWN, Status.AGAIN, Status.ACCEPTED])
def test_only_what_this_attempt_has_sent_is_not_suppressed(status):
    """A person on the list gets nothing more; a text that this very attempt sent before they opted out was sent."""
    rows = texted([number(1)])
    table = checked(rows, campaign=Campaign({keys_of(rows)[0]: status}), suppress=rows)
    assert statuses(table) == [Status.ACCEPTED if status == Status.ACCEPTED else Status.SUPPRESSED]


@pytest.mark.parametrize(
    ("column", "end"),
    [
        (pa.array(["+27 82 123 4567 x"]), " (2782*****67)"),
        (pa.array(["  "]), ": no number"),
        (pa.array([-27821234567]), " (2782*****67)"),
        (pa.array([27821234567.5]), " (2782*****75)"),
        (pa.array([float("nan")]), ": no number"),
        (pa.array([12]), " (*****)"),
        (pa.array(["0821234567"]).dictionary_encode(), " (0821*****67)"),
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


@pytest.mark.parametrize("resends", [False, True])
def test_a_row_has_the_status_of_who_holds_its_message(store, enter, resends):
    """What was sent, what may have been, and what is under way; of this campaign only.

    Where unknown messages are resent, those of a request that is lost are to be sent, and no others.
    """
    keys = [key for rows in checked(ROWS).spool.batches() for key in rows.columns.column("key").to_pylist()]
    for place, (campaign, state) in enumerate([("c", ACCEPTED), ("c", UNKNOWN), ("c", None), ("other", ACCEPTED)]):
        ledger = enter(campaign=campaign, clock=time.time)
        (claim,) = ledger.commit(chunks=[request_of([keys[place]], [None])], claim_seconds=60.0)
        if state is not None:
            close(ledger, claim.request_id, state)
    table = checked(ROWS, campaign=CampaignReader(store, "c", claimant()), resends=resends)
    lost = Status.AGAIN if resends else Status.UNKNOWN
    assert statuses(table) == [Status.ALREADY_SENT, lost, Status.UNKNOWN, Status.FREE, Status.FREE]
    assert len(table.held_by) == 2
