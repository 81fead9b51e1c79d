from __future__ import annotations

from support.faults import values


def test_a_table_in_another_form_texts_nobody_again(ledgers, capfd):
    """Other rows, types, files and formats: everybody of two tables is texted once, or the table is refused."""
    figures = values.run(ledgers, quick=True)
    assert (figures.cases, figures.broken, capfd.readouterr().err) == (len(values.CASES), 0, "")
