from __future__ import annotations

from support.sending import people


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
