from __future__ import annotations

import pytest
from support.faults.__main__ import PARTS, main
from support.faults.verdict import Figures


def a_part(figures):
    """Make a part that comes to the same figures on every store."""
    return lambda ledgers, quick: figures


@pytest.mark.parametrize(
    ("figures", "status"),
    [
        (Figures(cases=1200, unknown=34), 0),
        (Figures(cases=1, duplicates=1), 1),
        (Figures(cases=1, lost=1), 1),
        (Figures(cases=1, wrongly_accepted=1), 1),
        (Figures(cases=1, wrongly_not_sent=1), 1),
    ],
    ids=str,
)
def test_a_broken_promise_fails_the_command(monkeypatch, capsys, figures, status):
    """Any duplicate, loss or wrong word gives exit status 1; what is unknown is only counted."""
    monkeypatch.setitem(PARTS, "steps", a_part(figures))
    assert main(["--only", "steps", "--stores", "sqlite"]) == status
    assert f"{figures.cases:,}" in capsys.readouterr().out


def test_parts_add_up(monkeypatch, capsys):
    """One broken part of one store is enough, and the table's last row is the sum."""
    monkeypatch.setitem(PARTS, "steps", a_part(Figures(cases=111)))
    monkeypatch.setitem(PARTS, "network", a_part(Figures(cases=222, duplicates=1)))
    assert main(["--only", "steps", "network", "--stores", "sqlite"]) == 1
    assert "333" in capsys.readouterr().out


def test_an_unknown_part_is_refused(capsys):
    """A part that is misspelt is not passed over."""
    with pytest.raises(SystemExit):
        main(["--only", "step"])
    assert "invalid choice: 'step'" in capsys.readouterr().err


def test_a_part_that_does_not_end_fails_the_command(monkeypatch, capsys):
    """An error in one part is shown, the others are run, and the status says so."""

    def broken(ledgers, quick):
        raise RuntimeError("no more threads")

    monkeypatch.setitem(PARTS, "steps", broken)
    monkeypatch.setitem(PARTS, "network", a_part(Figures(cases=222)))
    assert main(["--only", "steps", "network", "--stores", "sqlite"]) == 1
    shown = capsys.readouterr()
    assert ("did not end" in shown.out, "222" in shown.out, "no more threads" in shown.err) == (True, True, True)
