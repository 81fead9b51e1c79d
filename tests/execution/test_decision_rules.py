from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.decision_rules import SOMEBODY, Approver, DecisionRules, QuestionOptions

ANN, BOB = Approver("1", "ann"), Approver("2", "bob")


def run(name, kind="manual"):
    return {"dag_run": SimpleNamespace(triggering_user_name=name, run_type=kind)}


def rules(triggered_by=None, approvers=None):
    return DecisionRules(QuestionOptions(approvers=approvers, four_eyes=triggered_by is not None), triggered_by)


def user(approver):
    return {"id": approver.id, "name": approver.name}


def test_everybody_may_decide_unless_somebody_is_named():
    """Airflow alone decides who may answer, and need not say who it was."""
    assert (rules().refusal(user(ANN)), rules().refusal({}), rules().refusal_of_earlier("x")) == (None, None, None)
    assert rules().assigned_users is None


def test_only_approvers_may_decide_and_their_ids_tell_them_apart():
    """A name can be chosen by its user; an approval on record has only the name."""
    only_ann = rules(approvers=(ANN,))
    assert only_ann.refusal(user(ANN)) is None
    for other in (user(BOB), {"id": "2", "name": "1"}, {"id": "2", "name": "ann"}, {}, {"id": None, "name": None}):
        assert only_ann.refusal(other) == "is not one of approvers"
    assert (only_ann.refusal_of_earlier("ann"), only_ann.refusal_of_earlier("bob")) == (None, "is not one of approvers")


@pytest.mark.parametrize("given", [user(ANN), {"id": "9", "name": "ANN"}, {"id": "Ann", "name": "x"}])
def test_the_person_who_triggered_the_run_may_not_decide(given):
    """Neither by the name nor by the id, in any case of letters, and neither now nor on record."""
    but_ann = rules("ann")
    assert "four_eyes=True" in but_ann.refusal(given)
    assert "four_eyes=True" in but_ann.refusal_of_earlier("Ann")
    assert (but_ann.refusal(user(BOB)), but_ann.refusal_of_earlier("bob")) == (None, None)


def test_a_number_as_an_id_is_nobodys_name():
    """FAB's ids are numbers, and a user may choose one as a name: an approval on record has only the name."""
    by_number = rules(approvers=(Approver("3", "3"), ANN))
    assert by_number.refusal({"id": "3", "name": "bob"}) is None
    assert by_number.refusal_of_earlier("3") == "is not one of approvers"
    assert by_number.refusal_of_earlier("ann") is None


@pytest.mark.parametrize("written", ["\u00e9d", "e\u0301d", "E\u0301D", "\uff45\u0301d"])
def test_a_name_is_one_person_however_it_is_encoded(written):
    """An accent may be a character of its own, and a letter a wide one: it is the person who triggered the run."""
    assert "four_eyes=True" in rules("\u00e9d").refusal({"id": "9", "name": written})
    assert "four_eyes=True" in rules(written).refusal_of_earlier("\u00c9d")


def test_with_four_eyes_a_decision_of_nobody_does_not_count():
    """It could be that of the person who triggered the run; so could one on record."""
    for unknown in ({}, {"id": "1", "name": None}):
        assert "cannot be distinguished" in rules("ann").refusal(unknown)
    assert "cannot be distinguished" in rules("ann").refusal_of_earlier(SOMEBODY)


def test_an_approver_who_triggered_the_run_is_not_assigned():
    """Airflow lets the others answer; where there is none, the task says so before anything is sent."""
    both = QuestionOptions(approvers=(ANN, BOB), four_eyes=True)
    assert DecisionRules.of(run("bob"), both).assigned_users == [ANN]
    with pytest.raises(InputError, match="approvers names nobody but bob"):
        DecisionRules.of(run("bob"), QuestionOptions(approvers=(BOB,), four_eyes=True))


@pytest.mark.parametrize("kind", ["scheduled", "asset_triggered", SimpleNamespace(value="scheduled")])
def test_a_run_that_airflow_started_excludes_nobody(kind):
    """Nobody has triggered it."""
    assert DecisionRules.of(run(None, kind), QuestionOptions(four_eyes=True)).refusal(user(ANN)) is None


@pytest.mark.parametrize("kind", ["manual", "backfill", "operator_triggered"])
def test_a_run_of_somebody_whom_airflow_does_not_name_is_refused(kind):
    """That person could approve it."""
    with pytest.raises(InputError, match=f"does not say who triggered this run, which is of the type {kind}"):
        DecisionRules.of(run(None, kind), QuestionOptions(four_eyes=True))
    assert DecisionRules.of(run(None, kind), QuestionOptions()).triggered_by is None


def test_an_airflow_that_does_not_know_who_triggered_a_run_is_refused():
    """The error names the argument and the version."""
    context = {"dag_run": SimpleNamespace(run_type="manual")}
    with pytest.raises(InputError, match=r"four_eyes=True needs Airflow 3\.1\.2 or newer"):
        DecisionRules.of(context, QuestionOptions(four_eyes=True))
