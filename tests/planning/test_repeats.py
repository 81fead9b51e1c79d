from __future__ import annotations

import pyarrow as pa
import pytest
from support.composed import composed
from support.keys import request_of
from support.planning import checked, number, planned, texted
from support.sending import claimant, outgoing

from airflow_provider_sms.exceptions import StoppedError
from airflow_provider_sms.ledger import holders
from airflow_provider_sms.ledger.forget import forget_number
from airflow_provider_sms.ledger.holders import CampaignReader
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.planning.changed_texts import count_repeats
from airflow_provider_sms.stop_flag import StopFlag

FIVE = [number(n) for n in range(5)]


@pytest.fixture
def hold(enter):
    """Send a table as an attempt of monday's run would; a state of None leaves the claim open."""

    def hold(rows, state=ACCEPTED, *, key_columns=None, **who):
        (batch,) = rows.to_batches()
        prepared = composed(Composer(None, "text", key_columns=key_columns), batch)
        ledger = enter(**{"run_id": "monday", **who})
        (claim,) = ledger.commit(chunks=[request_of(prepared.keys, prepared.destinations)], claim_seconds=60.0)
        if state is not None:
            ledger.commit(outcomes=[Outcome(claim.request_id, state)])

    return hold


@pytest.fixture
def plan(store):
    """Plan a table as the run of tuesday."""

    def plan(rows, campaign="c", *, resends=False, who=None, **how):
        asks = claimant(run_id="tuesday") if who is None else who
        return planned(rows, campaign=CampaignReader(store, campaign, asks), resends=resends, **how)

    return plan


def test_the_same_wording_again_texts_nobody_again(hold, plan):
    """The campaign has sent these messages: nothing is left to send to the people who had them."""
    hold(texted(FIVE))
    again = plan(texted([*FIVE, number(7)]))
    assert (again.already_sent, again.to_send, again.repeats) == (5, 1, 0)


@pytest.mark.parametrize("state", [ACCEPTED, UNKNOWN, None], ids=str)
def test_another_wording_texts_them_again(hold, plan, state):
    """Everybody counts who has had another text, or may have, however many messages they get now."""
    hold(texted(FIVE[:3]), state)
    other = pa.concat_tables([texted(FIVE, "Hello"), texted(FIVE[:1], "and another one")])
    assert (plan(other).to_send, plan(other).repeats) == (6, 3)


def test_people_count_once_however_many_texts_they_had(hold, plan):
    """The figure is of people, and not of texts."""
    hold(texted(FIVE))
    hold(texted(FIVE, "Hello"), task_id="other")
    assert plan(texted(FIVE[:2], "Good evening")).repeats == 2


def test_another_campaign_is_another_matter(hold, plan):
    """Neither do others' texts count in it, nor does it read them."""
    hold(texted(FIVE))
    assert (plan(texted(FIVE, "Hello"), "d").repeats, plan(texted(FIVE, "Hello")).repeats) == (0, 5)


def test_what_was_not_sent_counts_for_nobody(hold, plan):
    """The messages of a request that was turned down are free, and so are its people."""
    hold(texted(FIVE), NOT_SENT)
    assert plan(texted(FIVE, "Hello")).repeats == 0
    hold(texted(FIVE[:2]))
    assert plan(texted(FIVE, "Hello")).repeats == 2


@pytest.mark.parametrize(
    ("who", "people"), [({"try_number": 1}, 0), ({"map_index": 3}, 0), ({"task_id": "other"}, 5), ({"dag_id": "x"}, 5)]
)
def test_attempts_of_the_same_task_in_the_same_run_do_not_count(hold, plan, who, people):
    """A replaced attempt is refused with a changed text by itself, and mapped copies may send different things."""
    hold(texted(FIVE), **who)
    assert plan(texted(FIVE, "Hello"), who=claimant(2, run_id="monday")).repeats == people


def test_several_messages_in_one_table_are_meant(hold, plan):
    """Who has had one of them, and gets the others now, has had no other text than the table's."""
    hold(texted(FIVE))
    both = pa.concat_tables([texted(FIVE), texted(FIVE, "Hello")])
    assert (plan(both).already_sent, plan(both).to_send, plan(both).repeats) == (5, 5, 0)


def test_only_people_who_are_texted_count(hold, plan):
    """Not those on a list, nor those whose rows are invalid or gone."""
    hold(texted(FIVE))
    table = texted([*FIVE[:3], "x"], "Hello")
    assert plan(table, suppress=texted(FIVE[:1])).repeats == 2


def test_key_columns_say_what_another_message_is(hold, plan):
    """With them other words are the same message; other values in them are another one."""
    hold(texted(FIVE).append_column("invoice", pa.array(["1"] * 5)), key_columns=["invoice"])
    same = texted(FIVE, "Hello").append_column("invoice", pa.array(["1"] * 5))
    other = texted(FIVE).append_column("invoice", pa.array(["1", "1", "1", "2", "2"]))
    assert (plan(same, key_columns=["invoice"]).repeats, plan(same, key_columns=["invoice"]).to_send) == (0, 0)
    assert plan(other, key_columns=["invoice"]).repeats == 2


def test_unknown_messages_that_are_resent_are_no_other_text(hold, plan):
    """They go out again in the same words."""
    hold(texted(FIVE), UNKNOWN)
    again = plan(texted(FIVE), resends=True)
    assert (again.to_send, again.repeats) == (5, 0)
    assert plan(texted(FIVE, "Hello"), resends=True).repeats == 5


def test_groups_and_forgotten_people_are_nobody(hold, plan, enter, store):
    """The ledger has no number of theirs."""
    hold(texted(FIVE[:1]))
    enter(run_id="monday").commit(chunks=[request_of([outgoing(1).key], [None])], claim_seconds=60.0)
    assert plan(texted(FIVE, "Hello")).repeats == 1
    forget_number(store, FIVE[0], ["c"])
    assert plan(texted(FIVE, "Hello")).repeats == 0


def test_a_campaign_is_read_a_block_at_a_time(hold, store, monkeypatch):
    """However many messages it holds, only some are in memory, and people in several blocks count once."""
    hold(texted(FIVE))
    hold(texted(FIVE[:3], "Hello"))
    monkeypatch.setattr(holders, "_ROWS_AT_ONCE", 2)
    campaign = CampaignReader(store, "c", claimant(run_id="tuesday"))
    sizes = [(len(halves), len(destinations)) for halves, destinations in campaign.blocks_of_others()]
    assert sizes == [(2, 2)] * 4
    assert planned(texted(FIVE, "Good evening"), campaign=campaign).repeats == 5


def test_a_task_that_is_told_to_stop_counts_no_further(hold, store):
    """The count may take seconds."""
    hold(texted(FIVE))
    stop = StopFlag()
    stop.set()
    with pytest.raises(StoppedError):
        count_repeats(CampaignReader(store, "c", claimant()), checked(texted(FIVE, "Hello")).spool, stop)
