"""The pictures of the documentation: ``python -m support.screenshots``, which needs a Chromium."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import requests

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.browser import running_browser
from support.campaign_site import RUN, running_site
from support.faults.rest import RUN_SECONDS, until
from support.pages import ROOT

REMINDER = "Hi {first_name}, invoice {invoice} of R{amount:.2f} is overdue. Paid already? Thank you."
"""Text of the README's campaign: its readers see two of its lost responses."""
LOST = {"kind": "drop_after"}
SERVICES = {
    "sms_default": {"balance": 96_300, "latency": 0.2},
    "sms_statements": {"balance": 420},
    "sms_reminders": {"balance": 3050},
}
DAGS = {
    "appointment_reminders": {
        "source": {"count": 2400, "invalid": 12},
        "message": "Dear {first_name}, your appointment is tomorrow at 10:00. Reply STOP to opt out.",
        "campaign": "appointment reminders, 24 November",
    },
    "send_statements": {
        "source": {"count": 900},
        "message": "Hi {first_name}, your statement for October is ready.",
        "campaign": "statements-2026-10",
        "sms_conn_id": "sms_statements",
        "on_low_balance": "wait",
    },
    "remind_customers": {
        "source": {"count": 800, "invalid": 3},
        "message": REMINDER,
        "campaign": "reminders",
        "sms_conn_id": "sms_reminders",
        "concurrency": 1,
    },
    "spring_sale": {
        "source": {"count": 90_000, "invalid": 41},
        "message": "Hi {first_name}, the spring sale begins on Friday. Reply STOP to opt out.",
        "campaign": "spring sale",
        "max_requests_per_second": 2,
    },
}
"""Arguments of the operator, by DAG, with those of the table of people."""


def _take_campaigns(browser, folder):
    """Take an Airflow whose campaigns are in different states, on a busy morning."""
    with running_site(folder, DAGS, SERVICES) as site:
        site.services["sms_reminders"].set_faults([{"kind": "none", "times": 3}, LOST, {"kind": "none"}, LOST])
        for dag_id in ("appointment_reminders", "send_statements", "remind_customers"):
            site.airflow.trigger(dag_id, RUN)
        site.await_state("appointment_reminders")
        site.await_state("remind_customers")
        site.await_state("send_statements", "deferred")
        site.airflow.trigger("spring_sale", RUN)
        texted = site.services["sms_default"].accepted
        until(lambda: len(texted) > 14_000, seconds=RUN_SECONDS, what="the sale is sent", every=0.5)
        with site.page(browser, "vic", height=460) as page:
            page.frame_locator("iframe").locator("#list tbody tr").nth(3).wait_for()
            _take(page, "campaigns-list-light")
        with site.page(browser, "ed", color_scheme="dark", width=1280, height=560) as page:
            _open(page, "spring sale")
            _take(page, "campaigns-sending-dark")
        with site.page(browser, "ed", height=690) as page:
            inside = _open(page, "reminders")
            inside.get_by_role("button", name="Was not sent").first.click()
            inside.get_by_role("button", name="Yes").wait_for()
            _take(page, "campaigns-unknown-light")


def _open(page, name):
    inside = page.frame_locator("iframe")
    inside.locator("tbody th").get_by_role("link", name=name, exact=True).click()
    inside.locator("#attempts tbody tr").first.wait_for()
    page.mouse.move(0, 0)
    return inside


def _take_sandbox(browser):
    messages = []
    for place, name in enumerate(("Thandi", "Sipho", "Anna", "Pieter", "Lerato", "Zoë"), 1):
        text = REMINDER.format(first_name=name, invoice=f"INV-{1040 + place}", amount=310 * place - 220.5)
        messages.append({"Content": text, "Destination": f"2782{place:07}"})
    with running_sandbox(SandboxConfig(token="made-up-token", balance=5000)) as sandbox:
        for some in (messages[:4], messages[4:]):
            headers = {"Authorization": "Bearer made-up-token", "Accept": "application/json"}
            url = f"{sandbox.base_url}/bulkmessages"
            requests.post(url, json={"Messages": some}, headers=headers, timeout=60).raise_for_status()
        sandbox.state.set_faults([LOST, {"kind": "status", "status": 429, "retry_after": "2", "times": 3}])
        with browser.page(sandbox.base_url.removesuffix("v1"), height=600) as page:
            page.locator("#messages > tr").nth(len(messages) - 1).wait_for()
            page.locator("#waiting > li").nth(1).wait_for()
            _take(page, "sandbox-light")


def _take(page, name):
    path = ROOT / "docs" / "images" / f"{name}.png"
    page.screenshot(path=str(path), animations="disabled", caret="hide")
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    with running_browser() as running, tempfile.TemporaryDirectory(prefix="airflow-provider-sms-shots-") as place:
        _take_sandbox(running)
        _take_campaigns(running, Path(place))
