from __future__ import annotations

import pytest
from sqlalchemy import update
from support.told import tell

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.schema import campaign
from airflow_provider_sms.monitoring import campaigns, number_lookup
from airflow_provider_sms.monitoring.number_lookup import Position, look_up_number


def everything(dag_id):
    """The permission to see every DAG."""
    return True


def test_a_number_is_found_however_it_is_written(store, ledger):
    """When it was texted, by which run, and by what event id; the last first."""
    (first,) = tell(store, "spring", claims=[(3, "accepted")], run_id="r1")
    (second,) = tell(store, "summer", claims=[(3, "unknown")], run_id="r2")
    for written, region in (("+27 82 000 0001", None), ("082 000 0001", "ZA")):
        found = look_up_number(ledger, written, region, may_see=everything).matches
        assert [(each.request.request_id, each.request.run_id) for each in found] == [(second, "r2"), (first, "r1")]
    assert found[1].request.event_id == 2**62 + first
    nobody = look_up_number(ledger, "+27 82 000 0009", None, may_see=everything)
    assert (nobody.matches, nobody.rest) == ([], None)


def test_what_the_list_hides_is_left_out(store, ledger):
    """A look-up shows no campaign that was sent by a DAG which the user may not see, by that DAG or another."""
    tell(store, "mine", dag_id="mine", claims=[(1, "accepted")])
    tell(store, "theirs", dag_id="theirs", claims=[(1, "accepted")])
    tell(store, "both", dag_id="mine", claims=[(1, "accepted")])
    tell(store, "both", dag_id="theirs", try_number=2)
    found = look_up_number(ledger, "+27820000000", None, may_see=lambda dag_id: dag_id == "mine")
    assert [each.request.campaign for each in found.matches] == ["mine"]


@pytest.mark.parametrize("requests_at_a_time", [1, 2, 1000])
def test_a_look_up_whose_time_is_up_goes_on_where_it_stopped(store, ledger, monkeypatch, requests_at_a_time):
    """Each look-up reads one piece at least, and all of them together find each request once."""
    monkeypatch.setattr(number_lookup, "PIECE_REQUESTS", requests_at_a_time)
    monkeypatch.setattr(campaigns, "_FIRST_WINDOW", 2)
    to_me = []
    for number in range(7):
        own = tell(store, f"c{number}", dag_id=f"d{number % 3}", claims=[(1, "accepted")] * (number + 1))
        to_me += own[:1] if number % 3 else []
    start, pieces, found, times = None, 0, [], []
    while pieces == 0 or start:
        part = look_up_number(
            ledger, "+27820000000", None, may_see=lambda dag_id: dag_id != "d0", start=start, seconds=-1.0
        )
        found += [each.request.request_id for each in part.matches]
        times.append(part.looked_back_to)
        start, pieces = part.rest, pieces + 1
    assert found == to_me[::-1]
    times = [each for each in times if each is not None]
    assert times == sorted(times, reverse=True)
    assert pieces >= 4
    whole = look_up_number(ledger, "+27820000000", None, may_see=lambda dag_id: dag_id != "d0", seconds=60.0)
    assert ([each.request.request_id for each in whole.matches], whole.rest) == (to_me[::-1], None)


def test_a_look_up_does_not_tell_when_a_hidden_campaign_was_created(store, ledger, monkeypatch):
    """The oldest visible campaign says how far back it looked; while it has read none, it does not say."""
    for window in ("_FIRST_WINDOW", "_LARGEST_WINDOW"):
        monkeypatch.setattr(campaigns, window, 1)
    for name in ("hidden", "mine", "hidden too"):
        tell(store, name, dag_id=name, claims=[(1, "accepted")])
    with store.write(1) as connection:
        for number in (1, 2, 3):
            connection.execute(update(campaign).where(campaign.c.id == number).values(created_at=number))

    def look_up(seconds):
        return look_up_number(ledger, "+27820000000", None, may_see=lambda dag_id: dag_id == "mine", seconds=seconds)

    stopped, whole = look_up(-1.0), look_up(60.0)
    assert (stopped.looked_back_to, stopped.matches, stopped.rest) == (None, [], Position(2))
    assert (whole.looked_back_to, len(whole.matches), whole.rest) == (2, 1, None)


def test_a_look_up_goes_on_from_no_hidden_campaign(store, ledger, monkeypatch):
    """The place where it stopped is told to the reader, so it is not the id of a campaign that is hidden."""
    for window in ("_FIRST_WINDOW", "_LARGEST_WINDOW"):
        monkeypatch.setattr(campaigns, window, 3)
    monkeypatch.setattr(campaigns, "_ENDS", 3)
    for name in ("mine", *map(str, range(9)), "mine too"):
        tell(store, name, dag_id=name[:4], claims=[(1, "accepted")])
    places, found, start = [], [], None
    while start is not None or not places:
        part = look_up_number(
            ledger, "+27820000000", None, may_see=lambda dag_id: dag_id == "mine", start=start, seconds=-1.0
        )
        start = part.rest
        places.append(start and start.campaign_id)
        found += [each.request.campaign for each in part.matches]
    assert (places, found) == ([9, 6, 1, None], ["mine too", "mine"])


def test_text_that_is_no_number_is_refused_without_quoting_it(ledger):
    """The error gives the reason, and not the number."""
    with pytest.raises(InputError, match="This number cannot be read") as error:
        look_up_number(ledger, "08200000012345", "ZA", may_see=everything)
    assert "0820000" not in str(error.value)
