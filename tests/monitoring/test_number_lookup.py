from __future__ import annotations

import pytest
from support.told import tell

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.monitoring.number_lookup import look_up_number


def test_a_number_is_found_however_it_is_written(store, ledger):
    """When it was texted, by which run, and by what event id; the last first."""
    (first,) = tell(store, "spring", claims=[(3, "accepted")], run_id="r1")
    (second,) = tell(store, "summer", claims=[(3, "unknown")], run_id="r2")
    for written, region in (("+27 82 000 0001", None), ("082 000 0001", "ZA")):
        found = look_up_number(ledger, written, region, hidden=())
        assert [(each.request.request_id, each.request.run_id) for each in found] == [(second, "r2"), (first, "r1")]
    assert found[1].request.event_id == 2**62 + first
    assert look_up_number(ledger, "+27 82 000 0009", None, hidden=()) == []


def test_what_hidden_dags_sent_is_left_out(store, ledger):
    """A look-up shows nothing of DAGs that the user may not see."""
    tell(store, "mine", dag_id="mine", claims=[(1, "accepted")])
    tell(store, "theirs", dag_id="theirs", claims=[(1, "accepted")])
    found = look_up_number(ledger, "+27820000000", None, hidden={"theirs"})
    assert [each.request.campaign for each in found] == ["mine"]


def test_text_that_is_no_number_is_refused_without_quoting_it(ledger):
    """The error gives the reason, and not the number."""
    with pytest.raises(InputError, match="no number that can be texted") as error:
        look_up_number(ledger, "08200000012345", "ZA", hidden=())
    assert "0820000" not in str(error.value)
