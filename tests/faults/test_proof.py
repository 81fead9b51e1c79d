from __future__ import annotations

from datetime import datetime, timezone

import pytest
from support.faults import proof, table
from support.faults.table import main
from support.faults.verdict import Figures


def today():
    return datetime.now(timezone.utc).date()


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A copy of the page, which the command takes for it; and a part that is not run."""
    copy = tmp_path / "page.md"
    copy.write_text(proof.PAGE.read_text())
    monkeypatch.setattr(proof, "PAGE", copy)
    monkeypatch.setitem(table.PARTS, "steps", lambda ledgers, quick: Figures(cases=1234, unknown=5678))
    return copy


def test_a_full_run_writes_its_row_and_no_other(page):
    """Cases, unknown messages and the day, of the part and the kind of ledger that were run."""
    before, began = page.read_text().splitlines(), today()
    assert main(["--only", "steps", "--stores", "postgresql", "--write"]) == 0
    changed = [(old, new) for old, new in zip(before, page.read_text().splitlines(), strict=True) if old != new]
    ((old, new),) = changed
    row = " | ".join(old.split(" | ")[:4])
    # The day may end meanwhile.
    assert new in {f"{row} | 1,234 | 5,678 | {day} |" for day in (began, today())}


def test_a_run_that_is_quick_or_breaks_the_promise_writes_nothing(page, monkeypatch):
    """The page says that each of its rows is of a full run, and that the promise was kept in it."""
    before = page.read_text()
    with pytest.raises(SystemExit):
        main(["--only", "steps", "--stores", "sqlite", "--write", "--quick"])
    monkeypatch.setitem(table.PARTS, "steps", lambda ledgers, quick: Figures(cases=1, lost=1))
    assert main(["--only", "steps", "--stores", "sqlite", "--write"]) == 1
    assert page.read_text() == before


def test_a_part_that_the_page_does_not_have_is_an_error():
    """A new part gets its row by hand, with what it breaks."""
    with pytest.raises(ValueError, match="'tides' has no row"):
        proof.with_row(proof.PAGE.read_text(), "tides", "sqlite", Figures(), today())
