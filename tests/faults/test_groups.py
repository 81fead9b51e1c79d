from __future__ import annotations

from support.faults import groups
from support.faults.plans import FIRST_NUMBER

from airflow_provider_sms.ledger import claims as ledger
from airflow_provider_sms.ledger.frequency_cap import Capping


def test_campaigns_of_a_group_text_each_person_once_whatever_goes_wrong(ledgers, capfd):
    """Nobody has two texts, who has none was texted by the other campaign, and a pause is a pause."""
    figures = groups.run(ledgers, quick=True)
    assert (figures.cases, figures.broken, capfd.readouterr().err) == (groups.QUICK, 0, "")


def test_tables_have_people_in_common_and_campaigns_are_paused():
    """Each trial has something to find, and is made wholly from its seed."""
    trials = [groups.plans_of(seed) for seed in range(groups.QUICK)]
    shared = [set(one.rows) & set(other.rows) for one, other in trials]
    pauses = [m for plans in trials for plan in plans for each in plan.tries for m in each.mishaps if m.what == "pause"]
    assert sum(map(len, shared)) > 5 * groups.QUICK
    assert len(pauses) > groups.QUICK
    assert all(len(set(plan.rows)) == len(plan.rows) for plans in trials for plan in plans)
    assert min(int(number) for plans in trials for plan in plans for number in plan.rows) >= FIRST_NUMBER
    assert trials == [groups.plans_of(seed) for seed in range(groups.QUICK)]


def test_a_cap_that_is_not_kept_is_caught(ledgers, monkeypatch, capfd):
    """Whoever claims what is capped texts people twice, and is found out."""
    monkeypatch.setattr(Capping, "apply", lambda self, connection, chunks, claims, now: list(claims))
    assert groups.run(ledgers, quick=True, count=2).duplicates > 0


def test_a_pause_that_is_not_kept_is_caught(ledgers, monkeypatch, capfd):
    """Whoever claims during a pause is found out."""
    monkeypatch.setattr(ledger, "open_pause", lambda connection, its: None)
    # In one trial, nothing may be left to claim by the time of the pause: that is for the threads to decide.
    trials = (groups.run(ledgers, quick=True, first=seed, count=1) for seed in range(10 * groups.QUICK))
    assert any(trial.lost for trial in trials)
