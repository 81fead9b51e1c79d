from __future__ import annotations

import pytest
from support.faults import reconcile
from support.faults.reconcile import (
    NOT_TAKEN,
    ROWS,
    TAKEN,
    Case,
    Row,
    Told,
    main,
    of_section,
    play,
    table_of,
)
from support.faults.verdict import Figures

from airflow_provider_sms.ledger.account import CHARGED, NOT_CHARGED, UNDECIDED
from airflow_provider_sms.sending import settle
from airflow_provider_sms.sending.evidence import Verdict

ANY = Row("any", lambda quick: [])
NOT_ASSUMED = Row("any", lambda quick: [], assumed=False)


@pytest.mark.parametrize("row", [row for row in ROWS if row.assumed], ids=lambda row: row.name)
def test_the_balance_closes_nothing_wrongly(ledgers, row):
    """Whatever is lost, and whoever else spends what no request costs: nobody is twice, missing, or wrongly closed."""
    told = play(ledgers, row, row.cases(quick=True))
    assert (told.figures.broken, told.wrong) == (0, 0)
    assert told.right > 0 or row.by_chance
    assert told.unknown == 0 or not row.decided


def test_one_lost_request_is_closed_whether_it_was_taken_or_not(ledgers):
    """The account was charged for it, so it is accepted; or it was not, so it is sent by the same attempt."""
    told = play(ledgers, ANY, [Case(f".{TAKEN}.{NOT_TAKEN}.")])
    assert told == Told(lost=2, wrong=0, figures=Figures(cases=1, reconciled=8))


def test_a_charge_that_comes_after_it_counts_as_settled_misleads(ledgers):
    """The request is given back and posted again: the assumption is needed, and the suite notices."""
    told = play(ledgers, NOT_ASSUMED, [Case(f".{TAKEN}..", charged_after=1000.0)])
    assert (told.wrong, told.figures.duplicates) == (1, 4)


def test_a_sum_like_that_of_a_request_misleads(ledgers):
    """Somebody else spends what a lost request would have cost: it is closed as accepted though nobody was texted."""
    spent = reconcile.Spent(4.0, "balance", 2)
    told = play(ledgers, NOT_ASSUMED, [Case(f".{NOT_TAKEN}..", spent=spent)])
    assert (told.wrong, told.figures.wrongly_accepted > 0) == (1, True)


@pytest.mark.parametrize("point", ["before the post", "half sent"])
def test_a_process_that_goes_on_past_its_deadline_misleads(ledgers, point):
    """The balance showed that its request was not taken, as it was then; the service takes it later."""
    told = play(ledgers, NOT_ASSUMED, [Case("....", stopped=point)])
    assert (told.wrong, told.figures.duplicates) == (1, 4)


@pytest.mark.parametrize(("verdict", "fate"), [(CHARGED, NOT_TAKEN), (NOT_CHARGED, TAKEN)])
def test_a_judge_that_guesses_is_found_out(ledgers, monkeypatch, verdict, fate):
    """The witness, not the balance, tells whether a request was closed rightly."""

    def guess(_, requests):
        return {each.id: Verdict(verdict, "a guess") for each in requests}

    monkeypatch.setattr(settle, "judge", guess)
    told = play(ledgers, NOT_ASSUMED, [Case(f".{fate}..")])
    assert (told.wrong, told.figures.broken > 0) == (1, True)


def test_a_judge_that_says_nothing_is_found_out(ledgers, monkeypatch):
    """Where the balance tells, a request that is left unknown is an error of the section."""

    def shrug(_, requests):
        return {each.id: Verdict(UNDECIDED, "a shrug") for each in requests}

    monkeypatch.setattr(settle, "judge", shrug)
    row = Row("decided", lambda quick: [], decided=True)
    with pytest.raises(AssertionError, match="1 requests are unknown"):
        of_section(row, play(ledgers, row, [Case(f".{TAKEN}..")]))


def test_what_breaks_the_assumptions_is_counted_apart():
    """It is misled, and no broken promise of the suite; within the assumptions it is one."""
    told = Told(lost=3, wrong=1, figures=Figures(cases=2, duplicates=4, unknown=4, reconciled=8))
    assert of_section(NOT_ASSUMED, told) == Figures(cases=2, unknown=4, reconciled=8, misled=4)
    assert of_section(ANY, told).broken == 4


def test_the_table_has_a_row_for_each_kind():
    """Those that break the assumptions come last."""
    found = {row.name: Told(2, 0, Figures(cases=1, reconciled=8)) for row in ROWS}
    assert table_of(found).row_count == len(ROWS)


def test_the_command_tells_of_three_of_ten(monkeypatch, capsys):
    """The sentence that the documentation quotes has the figures of the row; the status is 0."""
    monkeypatch.setattr(reconcile, "play", lambda ledgers, row, cases: Told(30, 0, Figures(cases=10, reconciled=120)))
    assert main(["--only", "3 of 10"]) == 0
    assert "10 campaigns at random: 30 requests lost, 0 unknown, 0 closed wrongly" in capsys.readouterr().out


def test_the_command_fails_where_something_was_closed_wrongly(monkeypatch):
    """A row within the assumptions is enough."""
    monkeypatch.setattr(reconcile, "play", lambda ledgers, row, cases: Told(30, 1, Figures(cases=10, duplicates=4)))
    assert main(["--only", "3 of 10"]) == 1
    assert main(["--only", "after it counts"]) == 0
