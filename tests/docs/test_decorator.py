from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pandas as pd
from support.pages import ROOT, dags

PAGE = ROOT / "docs" / "other-classes.md"
(REMINDERS,) = (code for code in dags(PAGE) if "@task.bulk_sms" in code)


def test_the_dag_of_the_page_texts_whom_its_function_finds(run_file, sandbox, tmp_path):
    """Those with a confirmed appointment, in their own words."""
    booked = {
        "mobile": ["082 000 0001", "+27 83 000 0002"],
        "first_name": ["Thandeka", "Pieter"],
        "time": ["09:00", "10:30"],
        "confirmed": [True, False],
    }
    (tmp_path / "appointments").mkdir()
    today = datetime.now(timezone.utc).date()
    for day in (today, today + timedelta(days=1)):  # it may be midnight before the task runs
        pd.DataFrame(booked).to_parquet(tmp_path / "appointments" / f"{day}.parquet")
    ran = run_file(REMINDERS)
    assert (ran.state, ran.xcoms["remind"]["accepted"]) == ("success", 1)
    assert sandbox.state.accepted_messages == [("27820000001", "Hi Thandeka, we see you at 09:00.")]
