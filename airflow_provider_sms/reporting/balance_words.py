"""What the balance tells of unknown requests, in words: pure functions.

Apart from the summary and the row report, because commands, pages and errors share the words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sms.ledger.account import KeptEvidence


def verdict_words(evidence: KeptEvidence | None) -> str:
    """Return a verdict in words: ``charged``, ``not charged`` or ``undecided``; empty where there is no evidence."""
    return "" if evidence is None else evidence.verdict.replace("_", " ")


def sentences(evidence: Iterable[KeptEvidence | None]) -> list[str]:
    """Return the words of evidence in order, each once, since requests that were judged together share them."""
    return list(dict.fromkeys(each.words for each in evidence if each is not None and each.words))
