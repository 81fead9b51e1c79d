from __future__ import annotations

import re
from types import SimpleNamespace

from support.pages import ROOT, blocks, dags

from airflow_provider_sms.notifications.sms import SmsNotifier

PAGE = ROOT / "docs" / "other-classes.md"
TEXT = PAGE.read_text()
(ON_CALL,) = (code for code in dags(PAGE) if "on_failure_callback" in code)


def test_the_dag_of_the_page_texts_who_is_on_call(run_file, sandbox, monkeypatch):
    """Both people get the text of the page, in one request; the run and its link differ."""
    (numbers,) = re.findall(r"^If the variable `sms_on_call` is `([^`]+)`", TEXT, re.MULTILINE)
    monkeypatch.setenv("AIRFLOW_VAR_SMS_ON_CALL", numbers)
    (shown,) = (block.code for block in blocks(PAGE, "text") if block.code.startswith("Airflow: nightly.load failed"))
    ran = run_file(ON_CALL)
    texts = sandbox.state.accepted_messages
    assert (ran.state, [number for number, _ in texts]) == ("failed", ["27820000001", "27830000002"])
    assert {text.partition(", run ")[0] for _, text in texts} == {shown.partition(", run ")[0]}
    assert [request.operation for request in sandbox.state.requests] == ["bulk"]


def test_a_text_of_ones_own_is_that_of_the_page(sms_default, sandbox):
    """Its template has the task and its error."""
    (code,) = (block.code for block in blocks(PAGE, "python") if block.code.startswith("SmsNotifier("))
    notifier = eval(code, {"SmsNotifier": SmsNotifier})
    notifier({"dag": None, "ti": SimpleNamespace(task_id="load"), "exception": RuntimeError("the file is not there")})
    assert sandbox.state.accepted_messages == [
        (number, "load failed: the file is not there") for number in ("27820000001", "27830000002")
    ]
