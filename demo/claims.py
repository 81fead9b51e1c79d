"""The checks of the two runs: Airflow's XComs against the sandbox's witness and the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, Any

from demo.account import Section
from demo.evidence import files_with, ledger_entries, numbers_in, reasons_in, rows_of, witnessed

if TYPE_CHECKING:
    from pathlib import Path

    from demo.service import Seen
    from demo.workflow import Run

LARGEST_REQUEST = 100
OUTCOMES = ("accepted", "unknown", "not_sent", "invalid", "duplicate", "suppressed", "already_sent")
"""The counts of a summary that add up to its rows."""

CREDIT, CUSTOMERS, STAFF = "wait_for_credit", "text_customers", "text_staff"
"""The tasks of the DAG."""

LOOKS = 2
"""Balance requests of a run that sends nothing: one of the sensor, one of the plan."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run, and its traces outside Airflow.

    :param run: the run's states and XComs in Airflow.
    :param seen: the sandbox at the end of the run.
    :param ledger: the ledger's requests at the end of the run: kind, state, requests and messages.
    """

    run: Run
    seen: Seen
    ledger: list[tuple[str, str, int, int]]

    @classmethod
    def take(cls, run: Run, seen: Seen, ledger: Path) -> Evidence:
        """Return the evidence of a run that has just ended."""
        return cls(run, seen, ledger_entries(ledger))

    @property
    def summary(self) -> dict[str, Any]:
        """The summary returned by the task that texts the customers."""
        summary: dict[str, Any] = self.run.xcoms[CUSTOMERS]["return_value"]
        return summary


def about_rows(first: Evidence, table: Path) -> Section:
    """Return the section about the rows of the table."""
    section, summary = Section(f"Run 1: the rows of {table.name}"), first.summary
    counts = {name: summary[name] for name in OUTCOMES}
    reasons = reasons_in(first.run.output)
    section.add(
        "rows",
        summary["rows"],
        ("as many as the file has", summary["rows"] == rows_of(table)),
        ("the sum of the counts below", summary["rows"] == sum(counts.values())),
    )
    messages = witnessed(first.seen.witness, "bulk").messages
    section.add("accepted", counts["accepted"], ("as many as the sandbox witnessed", counts["accepted"] == messages))
    section.add("duplicate", counts["duplicate"], note="the same person and text, with the number written differently")
    section.add("already sent", counts["already_sent"], ("a new campaign", counts["already_sent"] == 0))
    section.add("unknown", counts["unknown"], ("every response arrived", counts["unknown"] == 0))
    section.add("not sent", counts["not_sent"], ("nobody was forgotten", counts["not_sent"] == 0))
    section.add("invalid", counts["invalid"], ("the sum of these:", counts["invalid"] == sum(reasons.values())))
    for reason, count in reasons.items():
        section.add("", count, note=reason)
    return section


def about_service(first: Evidence, waiting: Seen, topped_up: Decimal) -> Section:
    """Return the section about the service, by its responses, its witness and the ledger.

    :param waiting: the sandbox while the sensor waited.
    :param topped_up: the balance after the top-up.
    """
    section, summary, xcoms = Section("Run 1: the service"), first.summary, first.run.xcoms
    responses, group = xcoms[CUSTOMERS]["responses"], xcoms[STAFF]["return_value"]
    customers, staff = (witnessed(first.seen.witness, kind) for kind in ("bulk", "group"))
    cost, group_cost = sum((_money(response["Cost"]) for response in responses), Decimal(0)), _money(group["Cost"])
    paid = topped_up - cost - group_cost
    needed = ceil(summary["accepted"] / LARGEST_REQUEST)
    posted = customers.requests
    in_ledger = [
        ("bulk", "accepted", len(posted), customers.messages),
        ("group", "accepted", 1, staff.messages),
    ]
    section.add("tasks", *_success(first.run))
    section.add(
        "initial balance",
        waiting.balance,
        ("too low: the sensor waited, and nobody was texted", waiting.witness == b""),
    )
    seen_by_sensor = xcoms[CREDIT]["return_value"]["balance"]
    section.add("balance after the top-up", topped_up, ("read by the sensor", _money(seen_by_sensor) == topped_up))
    section.add(
        "requests",
        summary["requests"],
        ("the fewest possible, all witnessed", summary["requests"] == needed == len(posted)),
        ("of at most 100 messages", max(posted.values()) <= LARGEST_REQUEST),
    )
    parts = sum(response["Parts"] for response in responses)
    section.add("SMS parts", summary["parts"], ("the sum of the responses", summary["parts"] == parts))
    section.add("cost", _money(summary["cost"]), ("the sum of the responses", _money(summary["cost"]) == cost))
    section.add(
        "final balance",
        first.seen.balance,
        (f"reduced by that cost and {group_cost} for the group", first.seen.balance == paid),
    )
    section.add("witnessed: customers", customers.messages, note=f"{customers.people:,} people")
    section.add("witnessed: staff", staff.messages, note=f"{staff.people:,} people")
    most = max(customers.most, staff.most)
    section.add("same text and person", most, ("maximum: nobody was texted twice", most == 1))
    section.add(
        "in the ledger",
        sum(messages for *_, messages in first.ledger),
        ("all accepted, as many as in the witness", first.ledger == in_ledger),
    )
    event_ids = [int(response["EventId"]) for response in responses]
    section.add(
        "event ids",
        len(event_ids),
        ("exact: the same as in the witness", {*event_ids} == customers.event_ids),
    )
    section.footer = "Event ids: " + ", ".join(map(str, event_ids))
    return section


def about_second_run(first: Evidence, second: Evidence) -> Section:
    """Return the section about the second run of the same campaign."""
    section, summary = Section(f"Run 2: the campaign {second.summary['campaign']} again"), second.summary
    posted = second.seen.requests - first.seen.requests
    more = len(second.seen.witness.splitlines()) - len(first.seen.witness.splitlines())
    section.add("tasks", *_success(second.run))
    section.add(
        "already sent",
        summary["already_sent"],
        ("all that run 1 accepted", summary["already_sent"] == first.summary["accepted"]),
        ("the same duplicates", summary["duplicate"] == first.summary["duplicate"]),
        ("in the same campaign", summary["campaign"] == first.summary["campaign"]),
    )
    section.add("accepted", summary["accepted"], ("nobody", summary["accepted"] == summary["requests"] == 0))
    looks = ("the balance requests of the sensor and the plan, no others", posted == LOOKS)
    section.add("requests", posted, looks)
    section.add("witnessed", more, ("the file is the same, byte for byte", second.seen.witness == first.seen.witness))
    kept = sum(messages for *_, messages in second.ledger)
    section.add("in the ledger", kept, ("nothing new", second.ledger == first.ledger))
    section.add("final balance", second.seen.balance, ("unchanged", second.seen.balance == first.seen.balance))
    return section


def about_privacy(folder: Path, token: str, *runs: Evidence) -> Section:
    """Return the section about the token and the numbers, which must not appear in files and logs.

    :param folder: the folder with all files of the demonstration.
    :param token: the service's token.
    """
    section = Section("Kept private")
    files = files_with(token, folder)
    section.add("files with the token", len(files), ("no log, database or other file contains it", not files))
    numbers = sum(numbers_in(evidence.run.output, evidence.seen.witness) for evidence in runs)
    section.add("numbers in the log", numbers, ("no number of a recipient", numbers == 0))
    return section


def _success(run: Run) -> tuple[int, tuple[str, bool]]:
    return len(run.states), ("all succeeded", {run.state, *run.states.values()} == {"success"})


def _money(amount: float) -> Decimal:
    return Decimal(str(amount))
