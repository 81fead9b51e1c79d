"""Buttons beside a task in Airflow's UI: to its report, and to the sandbox that it texts."""

from __future__ import annotations

import ipaddress
import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from airflow.providers.common.compat.sdk import BaseOperatorLink, conf

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import BaseOperator, TaskInstanceKey

log = logging.getLogger(__name__)


class _PushedLink(BaseOperatorLink):
    """A link that the task pushes as an XCom as soon as it knows it, so that it is there while the task runs.

    Before Airflow 3 the web server asks for it, and has nothing but the XCom; since, the worker asks once the task has
    ended, and stores the answer under the same key.
    """

    xcom_key = ""

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002  # Airflow's
        """Give what the task pushed; empty, which shows no button, where it pushed nothing. Never raises."""
        from airflow.providers.common.compat.sdk import XCom

        try:
            link: Any = XCom.get_value(ti_key=ti_key, key=self.xcom_key)
        except Exception as error:  # noqa: BLE001  # Airflow 3.0 lets it end the worker, though the task has succeeded
            log.warning("The link %s cannot be read: %s", self.name, type(error).__name__)
            return ""
        return link if isinstance(link, str) else ""


class SmsReportLink(_PushedLink):
    """To the report by row, where ``[sms] report_url`` says how one is opened."""

    name = "SMS report"
    xcom_key = "_link_sms_report"


class SmsSandboxLink(_PushedLink):
    """To the page of the sandbox, where the connection points to one: to a service of this machine."""

    name = "SMS sandbox"
    xcom_key = "_link_sms_sandbox"


def report_url(report: str) -> str | None:
    """Give the address at which a report can be opened; None where the configuration knows none.

    :param report: the path or URI that it was written to.
    """
    template: str = conf.get("sms", "report_url", fallback="").strip()
    if not template.startswith(("http://", "https://")):
        return None
    _, is_uri, place = report.partition("://")
    if is_uri:
        # What stands before the @ names an Airflow connection.
        host, slash, path = place.partition("/")
        place = host.rpartition("@")[2] + slash + path
    return template.replace("{path}", quote(place if is_uri else report))


def sandbox_url(base_url: str) -> str | None:
    """Give the address of the sandbox's page; None where the service is on another machine, and so is none.

    :param base_url: of the service.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/" if loopback else None
