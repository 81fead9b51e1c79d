"""Connections that Airflow does not find, because there are none or because it could not look."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from airflow_provider_sms.exceptions import InputError, NoConnectionError
from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.hooks.sql_source import SqlSource

PERSON = "27820000001"


def test_a_look_up_that_fails_once_is_tried_again(send, witnessed, monkeypatch):
    """A secrets backend that fails looks like a missing connection: the next try finds it, and texts everybody once."""
    look_up, failing = BaseHook.get_connection, ["sms_default"]

    def get_connection(conn_id):
        if conn_id in failing:
            failing.remove(conn_id)
            # As Airflow does once each backend that it asked has failed, or knows nothing.
            raise AirflowNotFoundException(f"The conn_id `{conn_id}` isn't defined")
        return look_up(conn_id)

    monkeypatch.setattr(BaseHook, "get_connection", staticmethod(get_connection))
    ran = send([PERSON], "Hi", retries=1)
    assert (ran.state, ran.tries, dict(witnessed())) == ("success", 2, {(PERSON, "Hi"): 1})
    assert "its look-up may have failed" in ran.log


@pytest.mark.parametrize(
    "look_up",
    [
        lambda: SmsHook("nowhere").get_settings(),
        lambda: open_ledger("nowhere"),
        lambda: SqlSource("nowhere", "SELECT 1").open("suppress"),
    ],
    ids=["sms", "ledger", "source"],
)
def test_a_missing_connection_may_be_there_the_next_time(airflow_home, look_up):
    """Each of the three kinds says that the look-up may have failed, and is worth a retry; other mistakes are not."""
    with pytest.raises(
        NoConnectionError, match=r"'nowhere'.* its look-up may have failed.* Otherwise create"
    ) as raised:
        look_up()
    assert (raised.value.transient, InputError("wrong").transient) == (True, False)
