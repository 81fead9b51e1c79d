from __future__ import annotations

import pytest
from support.sending import claimant

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.campaigns import require_campaign
from airflow_provider_sms.ledger.name_rules import default_name, read_name


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("spring", "spring"),
        (" spring\n", "spring"),
        ("\u00a0spring\u00a0", "spring"),
        ("Cafe\u0301", "Caf\u00e9"),
        ("a\u200db", "a\u200db"),
    ],
)
def test_names_that_look_the_same_are_the_same(given, name):
    """Blanks around a name do not count, nor how a letter is composed."""
    assert read_name(given) == name


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, r"^campaign is None, once its template is rendered"),
        ("None", r"^campaign is None"),
        (" None ", r"^campaign is None"),
        ("", r"^campaign is empty"),
        (" \n\u00a0", r"^campaign is empty"),
        (5, r"^campaign must be text, not int"),
        ("spring\tsale", r"^campaign has a control character \(U\+0009\) at position 7"),
        ("spring\x00", r"^campaign has a control character \(U\+0000\)"),
        ("\ufeffspring", r"^campaign has a character that nobody sees \(U\+FEFF\) at position 1"),
        ("spring\u2028sale", r"^campaign has a line break \(U\+2028\)"),
        ("spring\ud800", r"^campaign has a half a character"),
        ("x" * 1001, r"^campaign has 1001 characters, and may have 1000"),
    ],
    ids=ascii,
)
def test_what_is_no_name_is_refused(given, says):
    """The error names the argument, and says what to do."""
    with pytest.raises(InputError, match=says) as raised:
        read_name(given)
    assert str(raised.value).endswith(
        "Nothing was sent. Give the campaign a name, or leave campaign out for one of each task and DAG run"
    )


def test_no_two_tasks_have_one_campaign_by_default():
    """Ids may hold dots, so a dot between them would not tell them apart."""
    first = claimant(dag_id="marketing.za", task_id="send", run_id="manual__2026-11-22")
    second = claimant(dag_id="marketing", task_id="za.send", run_id="manual__2026-11-22")
    assert (default_name(first), default_name(second)) == (
        "marketing.za/send/manual__2026-11-22",
        "marketing/za.send/manual__2026-11-22",
    )


def test_mapped_copies_share_a_campaign():
    """Their tables may overlap, and may be cut anew."""
    assert default_name(claimant(map_index=3)) == default_name(claimant()) == "d/t/r"


def test_a_name_may_be_as_long_as_the_ledger_takes(enter, store):
    """And may hold whatever people write."""
    for name in ("x" * 1000, "Frühling: 50 % 🎉", "None-such", "nan"):
        enter(campaign=read_name(name))
        with store.read() as connection:
            assert require_campaign(connection, name)
