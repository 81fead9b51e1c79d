"""Screenshots of the campaign pages in Airflow, during a busy morning."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.campaign_site import CampaignSite, running_site
from support.screenshots.shots import Shot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.screenshots.shots import Scheme

RUN = "morning"
NAMES = ("Thandi", "Sipho", "Anna", "Pieter", "Lerato", "Zoë", "Zanele", "Kagiso", "Naledi", "Ruan")
NUMBERS = ("2782", "2760", "2782", "2771", "2782", "44770")
"""First digits of unassigned numbers, by the sandbox's networks."""
OPTED_OUT = ("27820020012", "27820020150")
EXPECTED = (
    # Airflow's page requests the current user before the sign-in.
    r"401.*/ui/config",
    r"401 \(Unauthorized\)",
)


@contextmanager
def shots() -> Iterator[list[Shot]]:
    """Run an Airflow with campaigns in different states, and yield the shots of its pages."""
    folder = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-shots-"))
    try:
        with running_site(folder, _dags(folder), SERVICES, run=RUN) as site:
            _let_happen(site)
            yield pictures(site)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


SERVICES = {
    "sms_default": {"balance": 96_300, "latency": 0.2},
    "sms_statements": {"balance": 420},
    "sms_reminders": {"balance": 3050, "opted_out": OPTED_OUT},
}


def _dags(folder: Path) -> dict[str, dict[str, Any]]:
    def people(name: str, count: int, **which: int) -> str:
        return _write_people(folder / f"{name}.parquet", count, **which)

    return {
        "appointment_reminders": {
            "source": people("appointments", 2400, invalid=12),
            "message": "Dear {first_name}, your appointment is tomorrow at 10:00. Reply STOP to opt out.",
            "campaign": "appointment reminders, 24 November",
            "cost_per_part": 1.0,
        },
        "send_statements": {
            "source": people("statements", 900, first=10_000),
            "message": "Hi {first_name}, your statement for October is ready.",
            "campaign": "statements-2026-10",
            "sms_conn_id": "sms_statements",
            "on_low_balance": "wait",
        },
        # The DAG of the README: who has read about its lost response sees two of them here.
        "remind_customers": {
            "source": people("overdue", 800, first=20_000, invalid=3),
            "message": "Hi {first_name}, invoice {invoice} of R{amount:.2f} is overdue. Paid already? Thank you.",
            "campaign": "reminders",
            "key_columns": ["invoice"],
            "sms_conn_id": "sms_reminders",
            "concurrency": 1,
        },
        "spring_sale": {
            "source": people("customers", 90_000, first=30_000, invalid=41),
            "message": "Hi {first_name}, the spring sale begins on Friday. Reply STOP to opt out.",
            "campaign": "spring sale",
            "max_requests_per_second": 2,
        },
    }


def _write_people(path: Path, count: int, *, first: int = 0, invalid: int = 0) -> str:
    numbers = [f"+{NUMBERS[place % len(NUMBERS)]}{first + place:07}" for place in range(count)]
    numbers += ["not a number"] * invalid
    places = range(len(numbers))
    columns = {
        "destination": numbers,
        "first_name": [NAMES[place % len(NAMES)] for place in places],
        "invoice": [f"INV-{1041 + place}" for place in places],
        "amount": [f"{89 + place * 37 % 1900}.50" for place in places],
    }
    pq.write_table(pa.table(columns), path)
    return str(path)


def _let_happen(site: CampaignSite) -> None:
    lost = {"kind": "drop_after"}
    site.services["sms_reminders"].set_faults([{"kind": "none", "times": 3}, lost, {"kind": "none"}, lost])
    for dag_id in ("appointment_reminders", "send_statements", "remind_customers"):
        site.send(dag_id)
    site.await_state("appointment_reminders")
    site.await_state("remind_customers")
    site.await_state("send_statements", "deferred")
    site.send("spring_sale")
    site.await_texted("sms_default", 14_000)


def pictures(site: CampaignSite) -> list[Shot]:
    """Return the shots of a site's pages."""

    def of(
        name: str,
        shown: Callable[[Any], None],
        scheme: Scheme,
        *,
        who: str = "vic",
        **how: Any,
    ) -> Shot:
        def prepare(page: Any) -> None:
            site.sign_in(page, who)
            page.goto(f"{site.url}/plugin/sms")
            shown(page)

        return Shot(name, site.url + "/", expected=EXPECTED, schemes=(scheme,), prepare=prepare, **how)

    sale = partial(_opened, name="spring sale")
    return [
        of("campaigns-list", _listed, "light", height=460),
        of("campaigns-sending", sale, "dark", who="ed", width=1280, height=560),
        of("campaigns-unknown", _asked, "light", who="ed", height=690),
    ]


def _listed(page: Any) -> None:
    page.frame_locator("iframe").locator("#list tbody tr").nth(3).wait_for()


def _opened(page: Any, name: str) -> None:
    inside = page.frame_locator("iframe")
    inside.locator("tbody th").get_by_role("link", name=name, exact=True).click()
    inside.locator("#attempts tbody tr").first.wait_for()
    page.mouse.move(0, 0)


def _asked(page: Any) -> None:
    _opened(page, "reminders")
    page.frame_locator("iframe").get_by_role("button", name="Was not sent").first.click()
    page.frame_locator("iframe").get_by_role("button", name="Yes").wait_for()
