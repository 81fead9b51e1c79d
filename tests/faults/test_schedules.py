from __future__ import annotations

from support.faults import schedules, sigkills
from support.faults.plans import plan_of


def test_random_schedules_text_nobody_twice_and_lose_nobody(ledgers, capfd):
    """Whatever goes wrong, in whatever order, the witness, the ledger and the counts agree."""
    figures = schedules.run(ledgers, quick=True)
    assert (figures.cases, figures.broken, capfd.readouterr().err) == (150, 0, "")


def test_resending_what_is_unknown_loses_nobody_either(ledgers, capfd):
    """The policy that resends may text somebody twice; in the end nothing is unknown, and nothing is called wrongly."""
    figures = schedules.run(ledgers, quick=True, count=20, resend=True)
    assert (figures.cases, figures.broken, figures.unknown, capfd.readouterr().err) == (20, 0, 0, "")


def test_processes_killed_at_any_instant_text_nobody_twice_and_lose_nobody(ledgers, capfd):
    """After SIGKILL, and SIGKILL of the one that came after, the next try finds all that was claimed."""
    figures = sigkills.run(ledgers, quick=True)
    assert (figures.cases >= 5, figures.broken, capfd.readouterr().err) == (True, 0, "")


def test_a_schedule_is_made_wholly_from_its_seed():
    """A seed that breaks the promise is all that is needed to see it broken again."""
    assert [plan_of(seed) for seed in range(100)] == [plan_of(seed) for seed in range(100)]


def test_schedules_have_everything_in_them():
    """No kind of mishap or fault is left out by how schedules are made."""
    plans = [plan_of(seed) for seed in range(schedules.QUICK)]
    assert {(m.what, m.at) for plan in plans for t in plan.tries for m in t.mishaps} >= {
        *((what, at) for what in ("fail", "die") for at in ("any", "commit", "committed")),
        *((what, at) for what in ("die", "hang") for at in ("post", "posted")),
        *((what, "any") for what in ("stop", "jump", "back", "wake")),
    }
    parts = [part for plan in plans for part in plan.tries]
    assert {(p.resumed, p.overlaps, p.halts.requests is None, p.halts.balance is None) for p in parts if p.resumed} == {
        (True, overlaps, *halts) for overlaps in (False, True) for halts in ((True, True), (True, False), (False, True))
    }
    assert {plan.last_resumed for plan in plans} == {False, True}
    faults = [fault for plan in plans for fault in plan.faults]
    assert {f["kind"] for f in faults} == {*("none", "drop_before", "drop_after", "delay", "status", "truncated")}
    assert {f["status"] for f in faults if "status" in f} == {200, 403, 408, 429, 499, 500, 502, 503, 504}
    taken = [fault for fault in faults if fault.get("accepted")]
    assert {f["by"] for f in taken if f["status"] == 503} == {"gateway"}
    assert {len(plan.tries) for plan in plans} == {1, 2, 3, 4}
