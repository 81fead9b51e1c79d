from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.execution.xcom import MAX_CHARACTERS, MAX_RESPONSES, RESPONSES, push_responses


def test_responses_that_cannot_be_pushed_fail_no_send(caplog):
    """Everybody is texted by then and the ledger has the responses; a timeout or a signal still ends the task."""

    def push(xcom_push, count=lambda: 1, body='{"Cost": 1}'):
        context = {"task": SimpleNamespace(do_xcom_push=True), "ti": SimpleNamespace(xcom_push=xcom_push)}
        push_responses(context, SimpleNamespace(count_responses=count, responses=lambda _: [body]))

    push(Mock(side_effect=OverflowError("27820000003")))
    assert ("OverflowError" in caplog.text, "27820000003" in caplog.text) == (True, False)
    push(Mock(), count=Mock(side_effect=LedgerError("the disk is gone")))
    assert "the disk is gone" in caplog.text
    with pytest.raises(KeyboardInterrupt):
        push(Mock(side_effect=KeyboardInterrupt()))
    pushed = Mock()
    push(pushed)
    pushed.assert_called_once_with(key=RESPONSES, value=[{"Cost": 1}])
    push(pushed, body="x" * (MAX_CHARACTERS + 1))
    pushed.assert_called_with(key=RESPONSES, value={"truncated": True, "requests": 1})
    push(pushed, count=lambda: MAX_RESPONSES + 1)
    pushed.assert_called_with(key=RESPONSES, value={"truncated": True, "requests": MAX_RESPONSES + 1})
