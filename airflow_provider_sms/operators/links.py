"""Buttons beside a task in Airflow's UI: to its row report, and to the sandbox that it sends to."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperatorLink

from airflow_provider_sms.execution.xcom import REPORT_LINK, SANDBOX_LINK

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import BaseOperator, TaskInstanceKey

log = logging.getLogger(__name__)


class _PushedLink(BaseOperatorLink):
    """A link that the task pushes as an XCom as soon as it is known, so that the button is there while the task runs.

    The worker asks for the link once the task has ended or begins to wait, and stores it under the same key, empty if
    there is none. It asks the operator that ran, which knows what it has pushed: Airflow would log an error for a
    missing XCom.
    """

    xcom_key = ""

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the link that the task pushed; empty, which shows no button, where it pushed none. Never raises."""
        from airflow.providers.common.compat.sdk import XCom

        pushed = getattr(operator, "links_pushed", {})
        if self.xcom_key in pushed:
            return str(pushed[self.xcom_key])
        # Airflow stored the link of an earlier leg when that leg ended.
        if not getattr(operator, "is_resumed", False):
            return ""
        try:
            link: Any = XCom.get_value(ti_key=ti_key, key=self.xcom_key)
        except Exception as error:  # noqa: BLE001  # the task is done: no button is no failure
            log.warning("The link %s cannot be read: %s", self.name, type(error).__name__)
            return ""
        return link if isinstance(link, str) else ""


class SmsReportLink(_PushedLink):
    """The link to the row report, if ``[sms] report_url`` says how a report is opened."""

    name = "SMS report"
    xcom_key = REPORT_LINK


class SmsSandboxLink(_PushedLink):
    """The link to the sandbox's page, if the connection leads to one: to a service on this machine."""

    name = "SMS sandbox"
    xcom_key = SANDBOX_LINK
