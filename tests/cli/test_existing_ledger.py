from __future__ import annotations

from support.sending import people

from airflow_provider_sms.ledger.pauses import pause_of


def test_a_mistyped_campaign_gets_a_hint(ledger, sent_to_file):
    """The most similar names of campaigns, in any case; none where none is similar."""
    for name in ("Spring", "spring 2", "autumn"):
        sent_to_file(people(1), campaign=name)
    said = ledger("status", "SPRNG")
    assert (said.status, said.err) == (
        1,
        "The ledger has no campaign 'SPRNG'. Did you mean 'Spring' or 'spring 2'?\n",
    )
    assert ledger("pause", "x").err == "The ledger has no campaign 'x'\n"


def test_a_campaign_is_named_as_a_task_is_given_it(ledger, sent, store):
    """In any form of Unicode and with blanks around it: it looks the same, and a pause may be urgent."""
    name, decomposed = "fr\u00fchling", " fru\u0308hling "
    sent(people(1), campaign=name)
    assert ledger("status", decomposed, "-o", "json").data[0]["campaign"] == name
    assert ledger("pause", decomposed).status == 0
    assert pause_of(store, name) is not None


def test_a_name_that_is_refused_now_is_found_as_it_is(ledger, sent_to_file):
    """An earlier version allowed it; the campaign is still looked after."""
    for name in ("None", " two ", "line\nend"):
        sent_to_file(people(1), campaign=name)
        assert ledger("status", name, "-o", "json").data[0]["campaign"] == name
