"""The pictures of the documentation: ``python -m support.screenshots``, which needs a Chromium."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_sms.messages.message import Message
from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from airflow_provider_sms.service.client import SmsClient
from support.browser import NoBrowserError, running_browser
from support.campaign_site import running_site, write_people

IMAGES = Path(__file__).parents[2] / "docs" / "images"
REMINDER = "Hi {first_name}, invoice {invoice} of R{amount:.2f} is overdue. Paid already? Thank you."
"""Text of the README's campaign: its readers see two of its lost responses."""
LOST = {"kind": "drop_after"}
SERVICES = {
    "sms_default": {"balance": 96_300, "latency": 0.2},
    "sms_statements": {"balance": 420},
    "sms_reminders": {"balance": 3050},
}


def _dags(folder):
    def people(name, count, **which):
        return write_people(folder / f"{name}.parquet", count, **which)

    return {
        "appointment_reminders": {
            "source": people("appointments", 2400, invalid=12),
            "message": "Dear {first_name}, your appointment is tomorrow at 10:00. Reply STOP to opt out.",
            "campaign": "appointment reminders, 24 November",
            "cost_per_part": 1.0,
        },
        "send_statements": {
            "source": people("statements", 900, first=27_820_010_000),
            "message": "Hi {first_name}, your statement for October is ready.",
            "campaign": "statements-2026-10",
            "sms_conn_id": "sms_statements",
            "on_low_balance": "wait",
        },
        "remind_customers": {
            "source": people("overdue", 800, first=27_820_020_000, invalid=3),
            "message": REMINDER,
            "campaign": "reminders",
            "key_columns": ["invoice"],
            "sms_conn_id": "sms_reminders",
            "concurrency": 1,
        },
        "spring_sale": {
            "source": people("customers", 90_000, first=27_820_030_000, invalid=41),
            "message": "Hi {first_name}, the spring sale begins on Friday. Reply STOP to opt out.",
            "campaign": "spring sale",
            "max_requests_per_second": 2,
        },
    }


@contextmanager
def _busy_morning():
    """Run an Airflow with campaigns in different states."""
    with tempfile.TemporaryDirectory(prefix="airflow-provider-sms-shots-") as name:
        folder = Path(name)
        with running_site(folder, _dags(folder), SERVICES, run="morning") as site:
            site.services["sms_reminders"].set_faults([{"kind": "none", "times": 3}, LOST, {"kind": "none"}, LOST])
            for dag_id in ("appointment_reminders", "send_statements", "remind_customers"):
                site.send(dag_id)
            site.await_state("appointment_reminders")
            site.await_state("remind_customers")
            site.await_state("send_statements", "deferred")
            site.send("spring_sale")
            site.await_texted("sms_default", 14_000)
            yield site


def _take_campaigns(browser, into):
    with _busy_morning() as site:
        with site.page(browser, "vic", height=460) as page:
            page.frame_locator("iframe").locator("#list tbody tr").nth(3).wait_for()
            _take(page, into / "campaigns-list-light.png")
        with site.page(browser, "ed", color_scheme="dark", width=1280, height=560) as page:
            _open(page, "spring sale")
            _take(page, into / "campaigns-sending-dark.png")
        with site.page(browser, "ed", height=690) as page:
            inside = _open(page, "reminders")
            inside.get_by_role("button", name="Was not sent").first.click()
            inside.get_by_role("button", name="Yes").wait_for()
            _take(page, into / "campaigns-unknown-light.png")


def _open(page, name):
    inside = page.frame_locator("iframe")
    inside.locator("tbody th").get_by_role("link", name=name, exact=True).click()
    inside.locator("#attempts tbody tr").first.wait_for()
    page.mouse.move(0, 0)
    return inside


def _take_sandbox(browser, into):
    texts = [
        REMINDER.format(first_name=name, invoice=f"INV-{1041 + place}", amount=89.5 + 310 * place)
        for place, name in enumerate(("Thandi", "Sipho", "Anna", "Pieter", "Lerato", "Zoë"))
    ]
    messages = [Message(text, f"2782{place:07}") for place, text in enumerate(texts, 1)]
    with running_sandbox(SandboxConfig(token="made-up-token", balance=5000)) as sandbox:
        with SmsClient(sandbox.base_url, token="made-up-token") as client:
            client.send_bulk(messages[:4])
            client.send_bulk(messages[4:])
        sandbox.state.set_faults([LOST, {"kind": "status", "status": 429, "retry_after": "2", "times": 3}])
        with browser.page(sandbox.base_url.removesuffix("v1"), height=600) as page:
            page.locator("#messages > tr").nth(len(texts) - 1).wait_for()
            page.locator("#waiting > li").nth(1).wait_for()
            _take(page, into / "sandbox-light.png")


def _take(page, path):
    page.screenshot(path=str(path), animations="disabled", caret="hide")
    print(path)  # noqa: T201 - a command's output


def main():
    """Take the pictures.

    :returns: exit status: 0 when all were taken, 1 without a browser.
    """
    parser = argparse.ArgumentParser(prog="python -m support.screenshots", description=__doc__)
    parser.add_argument("--into", type=Path, default=IMAGES, help="folder (default: docs/images)")
    into = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    try:
        with running_browser() as browser:
            _take_sandbox(browser, into)
            _take_campaigns(browser, into)
    except NoBrowserError as missing:
        print(missing, file=sys.stderr)  # noqa: T201 - a command's error
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
