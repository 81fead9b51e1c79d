import copy
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators import sms
from airflow_provider_sms.send_window.window import SOUTH_AFRICAN_DIRECT_MARKETING, SendWindow

# Clocks that change by an hour and by half of one, at midnight, twice around Ramadan, by two hours, and never.
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Asia/Kathmandu",
    "Africa/Johannesburg",
)
JOHANNESBURG, BERLIN, NEW_YORK = "Africa/Johannesburg", "Europe/Berlin", "America/New_York"

times = st.integers(0, 24 * 60 - 1).map(lambda minute: f"{minute // 60:02}:{minute % 60:02}")
hours = st.tuples(times, times | st.just("24:00")).filter(lambda pair: pair[0] != pair[1])
weekdays = st.integers(0, 6)
# The weeks in which the clocks of Europe, America and others change, and some years.
MARCH, YEARS = datetime(2026, 3, 6, tzinfo=timezone.utc), datetime(2024, 1, 1, tzinfo=timezone.utc)
moments = st.timedeltas(timedelta(), timedelta(days=31)).map(MARCH.__add__) | st.timedeltas(
    timedelta(), timedelta(days=3000)
).map(YEARS.__add__)
near = st.lists(st.dates(date(2026, 3, 1), date(2026, 4, 6)), max_size=3)


@st.composite
def windows(draw):
    days = draw(st.none() | st.sets(weekdays, min_size=1))
    start, end = draw(hours)
    differing = draw(st.none() | st.dictionaries(st.sampled_from(sorted(days or range(7))), hours, max_size=3))
    return SendWindow(start, end, draw(st.sampled_from(ZONES)), weekdays=days, hours=differing, holidays=draw(near))


def at(text, zone="UTC"):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


def opens(window, text, zone="UTC", destination=None):
    """Give the time on the wall of a zone at which a window opens next, seen from another there; None: it is open."""
    opening = window.closed_until(at(text, zone), destination)
    return None if opening is None else opening.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S")


def answer(window, moment, destination):
    try:
        return window.closed_until(moment, destination)
    except InputError:
        return "never"


def holds(window, moment):
    """Say by the definition whether a window is open: what the clock on the wall shows is in the hours of some day."""
    wall = moment.astimezone(ZoneInfo(window.timezone)).replace(tzinfo=None)
    for day in (wall.date(), wall.date() - timedelta(days=1)):
        start, end = dict(window.hours or ()).get(day.weekday(), (window.start, window.end))
        begin = datetime.combine(day, time.fromisoformat(start))
        midnight = datetime.combine(day, time())
        finish = midnight + timedelta(hours=int(end[:2]), minutes=int(end[3:]))
        if finish < begin:
            finish += timedelta(days=1)
        if (
            begin <= wall < finish
            and (window.weekdays is None or day.weekday() in window.weekdays)
            and not {day, wall.date()} & set(window.holidays or ())
        ):
            return True
    return False


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


@given(windows(), st.lists(moments, max_size=2), st.lists(st.integers(0, 2 * 24 * 3600), max_size=6))
def test_what_it_remembers_is_what_it_would_find(window, begins, seconds):
    """Whatever it was asked before, for whom and in whatever order, it answers as a new one does."""
    window = replace(window, recipient_time_zone=True)
    asked = [
        (begin + timedelta(seconds=later), destination)
        for begin in begins
        for later in (0, *seconds)
        for destination in (None, "34612345678")
    ]
    assert [answer(window, *each) for each in asked] == [answer(copy.copy(window), *each) for each in asked]


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


def test_hours_past_midnight_end_though_they_were_asked_for_after_midnight():
    """An answer is remembered no longer than it holds, and says nothing of earlier moments."""
    window = SendWindow("20:00", "06:00", JOHANNESBURG)
    asked = [opens(window, f"2026-06-05 {moment}", JOHANNESBURG) for moment in ("01:00", "05:59", "06:00", "05:00")]
    assert asked == [None, None, "2026-06-05 20:00:00", None]


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


def test_the_south_african_window_on_each_weekday():
    """No Sundays, Saturdays from 09:00 to 13:00, other days from 08:00 to 20:00."""
    window = SOUTH_AFRICAN_DIRECT_MARKETING
    open_minutes = {}
    for number in range(7):
        midnight = at("2026-06-01 00:00", JOHANNESBURG) + timedelta(days=number)
        minutes = [m for m in range(24 * 60) if window.closed_until(midnight + timedelta(minutes=m)) is None]
        open_minutes[f"{midnight:%a}"] = minutes and (minutes[0] / 60, (minutes[-1] + 1) / 60, len(minutes) / 60)
    workday = (8, 20, 12)
    assert open_minutes == {**dict.fromkeys(("Mon", "Tue", "Wed", "Thu", "Fri"), workday), "Sat": (9, 13, 4), "Sun": []}


def test_south_african_holidays():
    """The public holidays of 2026 are closed, and so is the Monday after the one that is a Sunday."""
    noons = [at("2026-01-01 10:00", JOHANNESBURG) + timedelta(days=number) for number in range(365)]
    closed = [noon for noon in noons if SOUTH_AFRICAN_DIRECT_MARKETING.closed_until(noon)]
    # That of the local elections was declared in the course of the year: not each release of the library knows it.
    found = [f"{noon:%m-%d}" for noon in closed if f"{noon:%a}" != "Sun" and f"{noon:%m-%d}" != "11-04"]
    year = "01-01 03-21 04-03 04-06 04-27 05-01 06-16 08-10 09-24 12-16 12-25 12-26"
    assert found == year.split()


def test_a_holiday_can_be_added_to_those_of_the_country():
    """A ready-made window can be copied with one more closed day."""
    window = replace(SOUTH_AFRICAN_DIRECT_MARKETING, holidays=["ZA", date(2026, 11, 4)])
    asked = [opens(window, day, JOHANNESBURG) for day in ("2026-11-04 12:00", "2026-12-25 12:00", "2026-11-05 12:00")]
    assert asked == ["2026-11-05 08:00:00", "2026-12-28 08:00:00", None]


def test_a_subdivision_has_its_own_holidays():
    """Cesar Chavez Day is one in California, not in New York."""
    windows = [SendWindow("08:00", "20:00", NEW_YORK, holidays=code) for code in ("US-CA", "us-ny", "US")]
    assert [opens(each, "2026-03-31 12:00", NEW_YORK) for each in windows] == ["2026-04-01 08:00:00", None, None]


@pytest.mark.parametrize(
    ("destination", "opening"),
    [
        ("27821234567", "06:00"),  # Johannesburg, UTC+2
        ("12125550123", "13:00"),  # New York, UTC-5
        ("12135550123", "16:00"),  # Los Angeles, UTC-8
        ("34612345678", "08:00"),  # Madrid, UTC+1, and the Canary Islands, UTC+0
        ("9991234567", "06:00"),  # nobody's
        (None, "06:00"),
    ],
)
def test_the_recipients_clock(destination, opening):
    """It opens by the recipient's clock; by the latest of several; by the window's own where there is none."""
    window = SendWindow("08:00", "20:00", JOHANNESBURG, recipient_time_zone=True)
    assert opens(window, "2026-01-14 05:30", destination=destination) == f"2026-01-14 {opening}:00"


def test_several_clocks_are_open_together():
    """For a Spanish number it closes at Madrid's 20:00 and opens at the Canary Islands' 08:00."""
    window = SendWindow("08:00", "20:00", JOHANNESBURG, recipient_time_zone=True)
    asked = [opens(window, f"2026-01-14 {moment}", destination="34612345678") for moment in ("18:59", "19:00")]
    assert asked == [None, "2026-01-15 08:00:00"]


def test_without_recipient_time_zone_the_number_says_nothing():
    """The clock is the window's, whoever is texted."""
    window = SendWindow("08:00", "20:00", JOHANNESBURG)
    assert opens(window, "2026-01-14 05:30", destination="12125550123") == "2026-01-14 06:00:00"


def test_hours_that_no_moment_is_in_for_all_clocks():
    """From 09:00 to 17:00 is never in all of Russia's zones at once: that is said, without the number."""
    window = SendWindow("09:00", "17:00", JOHANNESBURG, recipient_time_zone=True)
    with pytest.raises(
        InputError, match=r"send_window: it never opens in all \d+ time zones of a number at once"
    ) as caught:
        window.closed_until(at("2026-01-14 12:00"), "79161234567")
    assert "916" not in str(caught.value)


def test_a_window_that_never_opens():
    """Where all days are closed for more than a year, that is said."""
    window = SendWindow(
        "08:00", "20:00", BERLIN, holidays=[date(2026, 1, 1) + timedelta(days=each) for each in range(500)]
    )
    with pytest.raises(InputError, match="it never opens in Europe/Berlin, within 400 days from 2026-01-14"):
        window.closed_until(at("2026-01-14 12:00"))


def test_a_yearly_opening_is_found():
    """One day in a year is enough."""
    closed = [date(2026, 1, 1) + timedelta(days=each) for each in range(365)]
    assert opens(SendWindow("08:00", "20:00", "UTC", holidays=closed), "2026-01-01 12:00") == "2027-01-01 08:00:00"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"start": "8 o'clock"},
            "send_window: start must be a time of the day to the minute, such as '08:00', not \"8 o'clock\"",
        ),
        ({"start": time(8, 0, 30)}, "start must be a time"),
        ({"start": time(8, tzinfo=timezone.utc)}, "start must be a time"),
        ({"end": "24:01"}, "end must be a time"),
        ({"end": "25:00"}, "end must be a time"),
        ({"end": 20}, "end must be a time"),
        ({"end": "08:00"}, "send_window: from 08:00 to 08:00 are no hours"),
        ({"start": "24:00"}, "from 24:00 to 20:00 are no hours"),
        ({"timezone": "Europe/Atlantis"}, "send_window: timezone must be a name of the IANA time zone database"),
        ({"timezone": "Europe"}, "timezone must be a name"),
        ({"timezone": "/etc/localtime"}, "timezone must be a name"),
        ({"timezone": ""}, "timezone must be a name"),
        ({"timezone": None}, "timezone must be a name"),
        ({"weekdays": []}, r"send_window: weekdays must be a list such as \['mon', 'tue'\]"),
        ({"weekdays": "mon"}, "weekdays must be a list"),
        (
            {"weekdays": ["mon", "mo"]},
            "send_window: weekdays must be named as 'mon' or 'Monday', or 0 for Monday to 6, not 'mo'",
        ),
        ({"weekdays": [7]}, "weekdays must be named"),
        ({"hours": {"sat": "09:00"}}, "send_window: hours must be hours by weekday, such as {'sat': "),
        ({"hours": {"sat": ("09:00", "09")}}, r"the end in hours\['sat'\] must be a time"),
        ({"hours": {"sonntag": ("09:00", "13:00")}}, "a day of hours must be named"),
        ({"hours": {"sat": ("09:00", "13:00"), 5: ("09:00", "12:00")}}, "hours has Saturday twice"),
        ({"hours": {"sat": ("09:00", "13:00")}, "weekdays": ["mon"]}, "hours has Saturday, which weekdays leaves out"),
        ({"holidays": "South Africa"}, "send_window: holidays must be a country as in ISO 3166"),
        ({"holidays": 2026}, "holidays must be a country"),
        ({"holidays": [datetime(2026, 1, 1)]}, "holidays must be a country"),  # noqa: DTZ001 - refused
    ],
)
def test_what_cannot_be_read_is_refused_when_the_dag_is_parsed(arguments, words):
    """An argument that cannot be read is an error that names it."""
    with pytest.raises(InputError, match=words):
        SendWindow(**{"start": "08:00", "end": "20:00", "timezone": JOHANNESBURG, **arguments})


@pytest.mark.parametrize("code", ["XX", "US-ZZ"])
def test_a_country_that_the_library_does_not_know(code):
    """It is an error as soon as the window is asked."""
    window = SendWindow("08:00", "20:00", JOHANNESBURG, holidays=code)
    with pytest.raises(
        InputError, match=f"the holidays library knows, such as 'ZA' or 'US-CA', or dates, not '{code}'"
    ):
        window.closed_until(at("2026-01-14 12:00"))


def test_a_moment_without_a_time_zone_is_refused():
    """It could be any of several moments."""
    with pytest.raises(InputError, match="a moment needs a time zone"):
        SendWindow("08:00", "20:00", JOHANNESBURG).closed_until(datetime(2026, 1, 14))  # noqa: DTZ001 - refused


def test_what_is_written_differently_is_the_same():
    """Two windows that say the same are equal, with equal hashes."""
    one = SendWindow(
        time(8), time(20), JOHANNESBURG, ["Tuesday", "mon"], ["za", date(2026, 1, 2)], {"Monday": (time(9), "9:30")}
    )
    two = SendWindow("8:00", "20:00", JOHANNESBURG, {0, 1}, (date(2026, 1, 2), "ZA"), {0: ("09:00", "09:30")})
    assert (one, hash(one)) == (two, hash(two))
    assert one != replace(one, end="21:00")


def test_its_representation_makes_it_again():
    """The representation is stable: it says all, and nothing of what was asked."""
    window = replace(SOUTH_AFRICAN_DIRECT_MARKETING, holidays=["ZA"])
    window.closed_until(at("2026-01-14 12:00"))
    assert repr(window) == (
        "SendWindow(start='08:00', end='20:00', timezone='Africa/Johannesburg', weekdays=(0, 1, 2, 3, 4, 5), "
        "holidays=('ZA',), hours=((5, ('09:00', '13:00')),), recipient_time_zone=False)"
    )
    assert eval(repr(window)) == window


@given(windows(), moments)
def test_copies_are_equal_and_answer_alike(window, moment):
    """A window that was pickled or copied is equal, and answers as it did."""
    answer = window.closed_until(moment)
    copies = [pickle.loads(pickle.dumps(window)), copy.deepcopy(window), copy.copy(window)]
    assert [(each, each.closed_until(moment)) for each in copies] == [(window, answer)] * 3


def test_it_is_a_value():
    """Nothing of it can be set."""
    with pytest.raises(FrozenInstanceError):
        SOUTH_AFRICAN_DIRECT_MARKETING.end = "23:00"


def test_it_is_imported_with_the_operators():
    """A DAG file imports it from where it imports the operators."""
    assert (sms.SendWindow, sms.SOUTH_AFRICAN_DIRECT_MARKETING) == (SendWindow, SOUTH_AFRICAN_DIRECT_MARKETING)


def test_dag_files_load_no_library_for_it():
    """Importing it, and making one, loads neither holidays nor phonenumbers nor Airflow; asking it may."""
    script = """
import sys
from datetime import datetime, timezone
from airflow_provider_sms.send_window.window import SendWindow

def loaded():
    print(*sorted({"airflow", "holidays", "pandas", "phonenumbers"} & {*sys.modules}))

window = SendWindow("08:00", "20:00", "Africa/Johannesburg", holidays="ZA", recipient_time_zone=True)
loaded()
window.closed_until(datetime(2026, 1, 14, tzinfo=timezone.utc), "27821234567")
loaded()
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["", "holidays phonenumbers"]
