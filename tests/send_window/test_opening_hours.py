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


@pytest.mark.parametrize(
    ("zone", "day", "utc"), [(BERLIN, "2026-10-25", ("00:29", "00:30", "01:00", "01:30", "02:00"))]
)
def test_an_hour_that_comes_twice_holds_twice(zone, day, utc):
    """Hours within the hour that the clock shows twice are open twice, and closed between."""
    window = SendWindow("02:30", "03:00", zone)
    assert [opens(window, f"{day} {moment}") for moment in utc] == [
        f"{day} 00:30:00",
        None,
        f"{day} 01:30:00",
        None,
        "2026-10-26 01:30:00",
    ]


def test_the_end_is_closed():
    """The first minute is open, and the end is not."""
    window = SendWindow("08:00", "20:00", JOHANNESBURG)
    asked = [
        opens(window, f"2026-06-01 {moment}", JOHANNESBURG)
        for moment in ("07:59:59.999999", "08:00", "19:59:59", "20:00")
    ]
    assert asked == ["2026-06-01 08:00:00", None, None, "2026-06-02 08:00:00"]


def test_hours_past_midnight_belong_to_the_day_on_which_they_begin():
    """Friday's hours last into Saturday; Friday's early hours would be Thursday's."""
    window = SendWindow("20:00", "06:00", JOHANNESBURG, weekdays=["fri"])
    asked = [
        opens(window, f"2026-06-{moment}", JOHANNESBURG) for moment in ("05 05:00", "05 20:00", "06 05:59", "06 06:00")
    ]
    assert asked == ["2026-06-05 20:00:00", None, None, "2026-06-12 20:00:00"]


def test_a_holiday_is_closed_from_midnight_to_midnight():
    """Hours of the day before end at midnight, and those that would begin on the holiday do not, not even after it."""
    window = SendWindow("20:00", "06:00", JOHANNESBURG, holidays=[date(2026, 6, 16)])
    asked = [
        opens(window, f"2026-06-{moment}", JOHANNESBURG) for moment in ("15 23:59", "16 00:00", "16 21:00", "17 01:00")
    ]
    assert asked == [None, *["2026-06-17 20:00:00"] * 3]


def test_a_whole_day_has_no_end():
    """From 00:00 to 24:00 it is never closed, also when the clock changes and at midnight."""
    window = SendWindow("00:00", "24:00", BERLIN)
    asked = [window.closed_until(at("2026-03-28 00:00") + timedelta(minutes=30 * each)) for each in range(100)]
    assert asked == [None] * 100
