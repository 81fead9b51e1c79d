from datetime import date, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.windows import BERLIN, JOHANNESBURG, NEW_YORK, at, holds, moments, opens, windows

from airflow_provider_sms.send_window.window import SendWindow


@given(windows(), moments)
def test_it_is_open_when_the_clock_on_the_wall_says_so(window, moment):
    """It is open exactly when the clock on the wall shows a time within the hours of a day that is not closed."""
    assert (window.closed_until(moment) is None) == holds(window, moment)


@given(windows(), moments, st.lists(st.floats(0, 1), max_size=30))
def test_it_opens_at_the_first_moment_that_is_open(window, moment, parts):
    """It opens at a moment in UTC that is open, and no moment before is."""
    opening = window.closed_until(moment)
    if opening is not None:
        last = opening - timedelta(microseconds=1)
        between = [moment + part * (last - moment) for part in (*parts, 1)]
        found = (opening.tzinfo, opening > moment, holds(window, opening), any(holds(window, each) for each in between))
        assert found == (timezone.utc, True, True, False)


@pytest.mark.parametrize(
    ("zone", "start", "now", "opening"),
    [
        (BERLIN, "02:30", "2026-03-29 01:00", "2026-03-29 03:00:00"),
        (NEW_YORK, "02:30", "2026-03-08 01:00", "2026-03-08 03:00:00"),
        (BERLIN, "08:00", "2026-03-29 01:00", "2026-03-29 08:00:00"),
        (NEW_YORK, "08:00", "2026-03-07 21:00", "2026-03-08 08:00:00"),
        (BERLIN, "08:00", "2026-10-24 21:00", "2026-10-25 08:00:00"),
        (NEW_YORK, "08:00", "2026-11-01 00:30", "2026-11-01 08:00:00"),
    ],
)
def test_the_clock_goes_forward_and_back(zone, start, now, opening):
    """On the day of a change it opens at the time on the wall; where that is skipped, when the skipped hour is over."""
    assert opens(SendWindow(start, "20:00", zone), now, zone) == opening


def test_an_hour_that_comes_twice_holds_twice():
    """Hours within the hour that the clock shows twice are open twice, and closed between."""
    window = SendWindow("02:30", "03:00", BERLIN)
    found = [opens(window, f"2026-10-25 {moment}") for moment in ("00:29", "00:30", "01:00", "01:30", "02:00")]
    assert found == ["2026-10-25 00:30:00", None, "2026-10-25 01:30:00", None, "2026-10-26 01:30:00"]


@pytest.mark.parametrize(
    ("window", "opening_at"),
    [
        (
            SendWindow("08:00", "20:00", JOHANNESBURG),
            {"01 07:59:59.999999": "01 08:00", "01 08:00": None, "01 19:59:59": None, "01 20:00": "02 08:00"},
        ),
        # Friday's hours last into Saturday; Friday's early hours would be Thursday's.
        (
            SendWindow("20:00", "06:00", JOHANNESBURG, weekdays=["fri"]),
            {"05 05:00": "05 20:00", "05 20:00": None, "06 05:59": None, "06 06:00": "12 20:00"},
        ),
        # Hours of the day before end at midnight, and those that would begin on the holiday do not, not even after it.
        (
            SendWindow("20:00", "06:00", JOHANNESBURG, holidays=[date(2026, 6, 16)]),
            {"15 23:59": None, **dict.fromkeys(("16 00:00", "16 21:00", "17 01:00"), "17 20:00")},
        ),
    ],
    ids=["day", "night", "holiday"],
)
def test_the_first_minute_is_open_and_the_end_is_not(window, opening_at):
    """Hours past midnight belong to the day on which they begin; a holiday is closed from midnight to midnight."""
    found = {moment: opens(window, f"2026-06-{moment}", JOHANNESBURG) for moment in opening_at}
    assert found == {moment: opening and f"2026-06-{opening}:00" for moment, opening in opening_at.items()}


def test_a_whole_day_has_no_end():
    """From 00:00 to 24:00 it is never closed, also when the clock changes and at midnight."""
    window = SendWindow("00:00", "24:00", BERLIN)
    asked = [window.closed_until(at("2026-03-28 00:00") + timedelta(minutes=30 * each)) for each in range(100)]
    assert asked == [None] * 100
