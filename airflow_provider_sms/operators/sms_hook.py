"""The hook of a task, as other Airflow providers offer it: ``task.hook``.

Apart from the base of the operators that send, because the sensor, which sends nothing, has a hook, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sms.hooks.sms import SmsHook

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import BaseOperator

    _Base = BaseOperator
else:
    _Base = object


class HasSmsHook(_Base):
    """Has the hook of the connection ``sms_conn_id``; a base beside Airflow's ``BaseOperator``.

    The property remembers the hook as long as the task has the same connection. ``functools.cached_property`` would
    keep a hook from before ``sms_conn_id`` was rendered, and a task would send with an account other than the one it
    names.
    """

    sms_conn_id: str
    _hook: SmsHook | None = None

    @property
    def hook(self) -> SmsHook:
        """The hook of the task's connection, created on first use. Before ``execute``, its id may be a template."""
        if self._hook is None or self._hook.sms_conn_id != self.sms_conn_id:
            self._hook = SmsHook(self.sms_conn_id)
        return self._hook
