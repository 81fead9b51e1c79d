"""The judge of a case, which compares ledger and summary with the witness.

The witness is the sandbox's own file, written before any response: every message in it was sent. All other records
are judged by it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import astuple, dataclass

from sqlalchemy import text

from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN
from airflow_provider_sms.reporting.summary import COUNTS

Sent = tuple[str, str]
"""Destination and text."""

_STATES = text(
    "SELECT m.message_key, r.state, r.deadline FROM sms_campaign c JOIN sms_message m ON m.campaign_id = c.id "
    "JOIN sms_request r ON r.id = m.request_id WHERE c.name = :name"
)

_RECONCILED = text(
    "SELECT r.submitted FROM sms_campaign c JOIN sms_request r ON r.campaign_id = c.id "
    "WHERE c.name = :name AND r.decided_by = 'balance'"
)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of some cases, which can be added to others.

    :param duplicates: messages in the witness beyond the first of the same text to the same person.
    :param lost: people, or rows of a summary, that nothing accounts for.
    :param wrongly_accepted: messages recorded as accepted, but not in the witness.
    :param wrongly_not_sent: messages recorded as not sent, and so free to be sent again, but in the witness.
    :param unknown: messages that were unknown at the end, which is no fault but a cost.
    :param reconciled: messages of lost requests that the balance closed.
    """

    cases: int = 0
    duplicates: int = 0
    lost: int = 0
    wrongly_accepted: int = 0
    wrongly_not_sent: int = 0
    unknown: int = 0
    reconciled: int = 0

    def __add__(self, other):
        return Figures(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def broken(self):
        """Number of times that the promise was broken."""
        return self.duplicates + self.lost + self.wrongly_accepted + self.wrongly_not_sent


def worst(looks):
    """Return the highest of each figure, for a case that was judged several times."""
    return Figures(*map(max, zip(*map(astuple, looks), strict=True)))


def read_witness(path, start=0):
    """Return how often each person was sent each text.

    :param start: byte to begin at, which is the first of a line.
    """
    with path.open("rb") as lines:
        lines.seek(start)
        entries = [json.loads(line) for line in lines]
    return Counter((entry["destination"], entry["content"]) for entry in entries)


def read_ledger(engine, campaign, now=-math.inf):
    """Return the state of the request that holds each of a campaign's messages; one that is free is missing.

    :param engine: of the ledger's database; only read, and not by the product's own code.
    :param now: since when a claim past its deadline counts as unknown; by default none does.
    """
    with engine.connect() as connection:
        rows = connection.execute(_STATES, {"name": campaign}).all()
    return {bytes(key): UNKNOWN if state == CLAIMED and end < now else state for key, state, end in rows}


def read_reconciled(engine, campaign):
    """Return how many messages each request of a campaign had that was closed by the balance."""
    with engine.connect() as connection:
        return list(connection.execute(_RECONCILED, {"name": campaign}).scalars())


def judge(witness, ledger, expected, *, resumed=True, summary=None):
    """Judge one case.

    :param witness: as :func:`read_witness` gives it; people who are not expected are passed over.
    :param ledger: as :func:`read_ledger` gives it.
    :param expected: every message of the table by its key, once.
    :param resumed: whether the last try had no faults and the deadlines of all before it had passed. Then no claim is
        open any more, nobody is left over, and the case is counted; else it is judged in its middle.
    :param summary: ``rows`` and the seven counts of the last try; None where it left none.
    """
    people = {destination for destination, _ in expected.values()}
    mine = {sent: count for sent, count in witness.items() if sent[0] in people}
    wrong = Counter(
        duplicates=sum(mine.values()) - len(mine),
        # A text that nobody wrote, a claim of a message that is not in the table.
        lost=len(mine.keys() - set(expected.values())) + len(ledger.keys() - expected.keys()),
    )
    for key, sent in expected.items():
        if fault := _fault(ledger.get(key, NOT_SENT), witnessed=sent in mine, resumed=resumed):
            wrong[fault] += 1
    if summary is not None:
        wrong.update(_faults_of(summary, len(mine), len(expected), resumed=resumed))
    unknown = sum(state == UNKNOWN for state in ledger.values())
    return Figures(cases=int(resumed), unknown=unknown if resumed else 0, **wrong)


def _fault(state, *, witnessed, resumed):
    """Return the defect of one message, as the name of a figure."""
    if state == NOT_SENT and witnessed:
        return "wrongly_not_sent"
    if state == ACCEPTED and not witnessed:
        return "wrongly_accepted"
    if state in (NOT_SENT, CLAIMED):
        return "lost" if resumed else None
    return None if state in (ACCEPTED, UNKNOWN) else "lost"


def _faults_of(summary, witnessed, people, *, resumed):
    """Return the defects of a summary, as figures.

    :param witnessed: people whom the witness holds, of ``people`` in the table.
    """
    counts = [summary[name] for name in COUNTS]
    called_sent = summary["accepted"] + summary["already_sent"]
    return {
        "lost": abs(summary["rows"] - sum(counts)) + sum(-count for count in counts if count < 0),
        "wrongly_accepted": max(0, called_sent - witnessed),
        "wrongly_not_sent": max(0, summary["not_sent"] - (people - witnessed)) if resumed else 0,
    }
