"""What is claimed of the two runs, and the evidence for it: Airflow's XComs against what others saw of them."""

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
"""How often a run that sends nothing reads the balance."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run, and what others saw of it.

    :param run: what Airflow has of it.
    :param seen: the sandbox at its end.
    :param ledger: the ledger's requests at its end: kind, state, requests and messages.
    """

    run: Run
    seen: Seen
    ledger: list[tuple[str, str, int, int]]

    @classmethod
    def take(cls, run: Run, seen: Seen, ledger: Path) -> Evidence:
        """Take the evidence of a run that has just ended."""
        return cls(run, seen, ledger_entries(ledger))

    @property
    def summary(self) -> dict[str, Any]:
        """What the task that texts the customers returned."""
        summary: dict[str, Any] = self.run.xcoms[CUSTOMERS]["return_value"]
        return summary


def about_rows(first: Evidence, table: Path) -> Section:
    """Account for every row of the table."""
    section, summary = Section(f"Run 1: what became of the rows of {table.name}"), first.summary
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
    section.add("duplicate", counts["duplicate"], note="the same person and text, the number written differently")
    section.add("already sent", counts["already_sent"], ("a new campaign", counts["already_sent"] == 0))
    section.add("unknown", counts["unknown"], ("every answer arrived", counts["unknown"] == 0))
    section.add("not sent", counts["not_sent"], ("nobody was forgotten", counts["not_sent"] == 0))
    section.add("invalid", counts["invalid"], ("the sum of these:", counts["invalid"] == sum(reasons.values())))
    for reason, count in reasons.items():
        section.add("", count, note=reason)
    return section


def about_service(first: Evidence, waiting: Seen, topped_up: Decimal) -> Section:
    """Account for what the service did, by its answers, its own witness and the ledger.

    :param waiting: the sandbox while the sensor waited.
    :param topped_up: the credit that then came.
    """
    section, summary, xcoms = Section("Run 1: what the service did"), first.summary, first.run.xcoms
    answers, group = xcoms[CUSTOMERS]["responses"], xcoms[STAFF]["return_value"]
    customers, staff = (witnessed(first.seen.witness, kind) for kind in ("bulk", "group"))
    cost, group_cost = sum((_money(answer["Cost"]) for answer in answers), Decimal(0)), _money(group["Cost"])
    paid = topped_up - cost - group_cost
    needed = ceil(summary["accepted"] / LARGEST_REQUEST)
    posted = customers.requests
    in_ledger = [
        ("bulk", "accepted", len(posted), customers.messages),
        ("group", "accepted", 1, staff.messages),
    ]
    section.add("tasks", *_success(first.run))
    section.add(
        "credit at first",
        waiting.balance,
        ("too little: the sensor waited, nobody was texted", waiting.witness == b""),
    )
    seen_by_sensor = xcoms[CREDIT]["return_value"]["balance"]
    section.add("credit then", topped_up, ("seen by the sensor", _money(seen_by_sensor) == topped_up))
    section.add(
        "requests",
        summary["requests"],
        ("as few as can be, all in the witness", summary["requests"] == needed == len(posted)),
        ("of at most 100 messages", max(posted.values()) <= LARGEST_REQUEST),
    )
    parts = sum(answer["Parts"] for answer in answers)
    section.add("SMS parts", summary["parts"], ("the sum of the responses", summary["parts"] == parts))
    section.add("cost", _money(summary["cost"]), ("the sum of the responses", _money(summary["cost"]) == cost))
    section.add(
        "balance afterwards",
        first.seen.balance,
        (f"less by that, and by {group_cost} for the group", first.seen.balance == paid),
    )
    section.add("witnessed: customers", customers.messages, note=f"{customers.people:,} people")
    section.add("witnessed: staff", staff.messages, note=f"{staff.people:,} people")
    most = max(customers.most, staff.most)
    section.add("same text and person", most, ("at most: nobody was texted twice", most == 1))
    section.add(
        "in the ledger",
        sum(messages for *_, messages in first.ledger),
        ("all accepted, as many as were witnessed", first.ledger == in_ledger),
    )
    answered = [answer["EventId"] for answer in answers]
    section.add(
        "event ids",
        len(answered),
        ("exact: the same in the witness", {*answered} == customers.event_ids),
        ("and in the summary", [*map(str, answered)] == summary["event_ids"]),
    )
    section.footer = "Event ids: " + ", ".join(map(str, answered))
    return section


def about_second_run(first: Evidence, second: Evidence) -> Section:
    """Account for the same campaign, run once more."""
    section, summary = Section(f"Run 2: the campaign {second.summary['campaign']} once more"), second.summary
    repeated = first.summary["accepted"] + first.summary["duplicate"]
    posted = second.seen.requests - first.seen.requests
    more = len(second.seen.witness.splitlines()) - len(first.seen.witness.splitlines())
    section.add("tasks", *_success(second.run))
    section.add(
        "already sent",
        summary["already_sent"],
        ("all that run 1 accepted, and their repeats", summary["already_sent"] == repeated),
        ("in the same campaign", summary["campaign"] == first.summary["campaign"]),
    )
    section.add("accepted", summary["accepted"], ("nobody", summary["accepted"] == summary["requests"] == 0))
    looks = ("the looks at the balance of the sensor and of the plan, no other", posted == LOOKS)
    section.add("requests", posted, looks)
    section.add("witnessed", more, ("the file is the same to the last byte", second.seen.witness == first.seen.witness))
    kept = sum(messages for *_, messages in second.ledger)
    section.add("in the ledger", kept, ("nothing new", second.ledger == first.ledger))
    section.add("balance afterwards", second.seen.balance, ("unchanged", second.seen.balance == first.seen.balance))
    return section


def about_privacy(folder: Path, token: str, *runs: Evidence) -> Section:
    """Account for what must not be seen.

    :param folder: holds all that the demonstration has written.
    :param token: the service's.
    """
    section = Section("Kept private")
    files = files_with(token, folder)
    section.add("files with the token", len(files), ("no log, database or file here has it", not files))
    numbers = sum(numbers_in(evidence.run.output, evidence.seen.witness) for evidence in runs)
    section.add("numbers in the log", numbers, ("no number of anybody who was texted", numbers == 0))
    return section


def _success(run: Run) -> tuple[int, tuple[str, bool]]:
    return len(run.states), ("all succeeded", {run.state, *run.states.values()} == {"success"})


def _money(amount: float) -> Decimal:
    return Decimal(str(amount))
