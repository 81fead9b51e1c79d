from __future__ import annotations

import pytest

from airflow_provider_sms.ledger.account import KeptEvidence, sentences, verdict_words


@pytest.mark.parametrize(
    ("verdict", "words"), [("charged", "charged"), ("not_charged", "not charged"), ("undecided", "undecided")]
)
def test_a_verdict_is_written_in_words(verdict, words):
    """People read them; programs read the verdict itself."""
    assert verdict_words(KeptEvidence(verdict, "", 0.0)) == words


def test_without_evidence_there_is_no_verdict():
    """A request of an earlier version has none."""
    assert verdict_words(None) == ""


def test_requests_that_were_judged_together_share_a_sentence():
    """It is written once, at the place of the first of them."""
    both = KeptEvidence("charged", "Requests 1 and 3 were taken.", 0.0)
    other = KeptEvidence("undecided", "Request 2: no balance is known before it.", 0.0)
    assert sentences([both, None, other, both._replace(read_at=9.0), other._replace(words="")]) == [
        both.words,
        other.words,
    ]
