from __future__ import annotations

from support.airflow import run_task

from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.operators.sms import BulkSmsOperator


def test_a_task_has_the_hook_of_its_connection():
    """A hook from before the connection was rendered would send with another account."""
    task = BulkSmsOperator(task_id="t", source="s", message="m", sms_conn_id="{{ 'sms_default' }}")
    assert (type(task.hook), task.hook.sms_conn_id) == (SmsHook, "{{ 'sms_default' }}")
    task.sms_conn_id = "sms_default"
    assert task.hook.sms_conn_id == "sms_default"


def test_a_task_sends_with_the_settings_of_its_hook_alone(sms_default, sandbox, ledger_path):
    """A team's own hook, which a subclass brings, gives the settings; what else it does is not asked."""
    used = []

    class Ours(SmsHook):
        def get_settings(self):
            used.append(self.sms_conn_id)
            return super().get_settings()

        def send_bulk(self, messages, *, send_options=None):
            raise AssertionError

        get_balance = send_bulk

    class WithOurs(BulkSmsOperator):
        @property
        def hook(self):
            return Ours(self.sms_conn_id)

    rows = [{"destination": "27820000001"}]
    ran = run_task(lambda: WithOurs(task_id="send", source=rows, message="Hi", sms_conn_id="{{ 'sms_default' }}"))
    assert (ran.state, set(used), len(sandbox.state.accepted)) == ("success", {"sms_default"}, 1)
