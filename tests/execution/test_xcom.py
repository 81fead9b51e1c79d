from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from airflow_provider_sms.execution.xcom import RESPONSES, for_xcom, push_responses


def test_any_response_can_be_an_xcom():
    """Airflow's messages take 64-bit integers, its database no NUL or half an emoji, and both few levels."""
    least, most = -(2**63), 2**64 - 1
    fields = {"EventId": 7, "Batch": [most, most + 1, least, least - 1, 0.5, True, None], "\ud83d\0": "Hi \ud83d\0"}
    shown = {"EventId": "7", "Batch": [most, str(most + 1), least, str(least - 1), 0.5, True, None], "??": "Hi ??"}
    assert for_xcom(json.dumps(fields)) == shown
    deep = for_xcom(f'{{"Cost": 1, "Extra": {"[" * 400}{"]" * 400}}}')
    assert (deep["Cost"], json.dumps(deep).count("["), "*****" in json.dumps(deep)) == (1, 50, True)
    assert for_xcom(f'{{"Cost": 1, "Extra": {"[" * 100_000}{"]" * 100_000}}}') == {"truncated": True}


def test_responses_that_cannot_be_pushed_fail_no_send(caplog):
    """Everybody is texted by then and the ledger has the responses; a timeout or a signal still ends the task."""

    def failing(error):
        def xcom_push(key, value):
            raise error

        return {"task": SimpleNamespace(do_xcom_push=True), "ti": SimpleNamespace(xcom_push=xcom_push)}

    push_responses(failing(OverflowError("27820000003")), [{}])
    assert "OverflowError" in caplog.text
    assert "27820000003" not in caplog.text
    with pytest.raises(KeyboardInterrupt):
        push_responses(failing(KeyboardInterrupt()), [{}])
    pushed = {}
    ti = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}))
    push_responses({"task": SimpleNamespace(do_xcom_push=True), "ti": ti}, [{"Cost": 1}])
    assert pushed == {RESPONSES: [{"Cost": 1}]}
