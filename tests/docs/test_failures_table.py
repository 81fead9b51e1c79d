from __future__ import annotations

from pathlib import Path

from airflow_provider_sms.sending import outcomes

PAGE = Path(__file__).parents[2] / "docs" / "failures.md"
HEADING = "## What becomes of a request\n"


def rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]


def test_the_page_shows_the_table_of_the_code():
    """What each end of a request means is written where it is decided, and the page repeats it word for word."""
    shown = PAGE.read_text().split(HEADING)[1].split("\n## ")[0]
    assert rows(shown) == rows(outcomes.__doc__)
    assert len(rows(shown)) > 10
