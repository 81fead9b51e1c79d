from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone

import phonenumbers
import pytest
from hypothesis import given
from hypothesis import strategies as st
from phonenumbers.timezone import time_zones_for_geographical_number, time_zones_for_number
from support.windows import BERLIN, JOHANNESBURG, NEW_YORK, at, holds, moments, opens, windows

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.send_window.window import SOUTH_AFRICAN_DIRECT_MARKETING, SendWindow, find_zone, zones_of

MORNING = ("09:00", "13:00")


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
    ("start", "now", "opening"),
    [
        ("02:30", "2026-03-29 01:00", "2026-03-29 03:00:00"),
        ("08:00", "2026-03-29 01:00", "2026-03-29 08:00:00"),
        ("08:00", "2026-10-24 21:00", "2026-10-25 08:00:00"),
    ],
)
def test_the_clock_goes_forward_and_back(start, now, opening):
    """On the day of a change it opens at the time on the wall; where that is skipped, when the skipped hour is over."""
    assert opens(SendWindow(start, "20:00", BERLIN), now, BERLIN) == opening


def test_an_hour_that_comes_twice_holds_twice():
    """Hours within the hour that the clock shows twice are open twice, and closed between."""
    window = SendWindow("02:30", "03:00", BERLIN)
    found = [opens(window, f"2026-10-25 {moment}") for moment in ("00:29", "00:30", "01:00", "01:30", "02:00")]
    assert found == ["2026-10-25 00:30:00", None, "2026-10-25 01:30:00", None, "2026-10-26 01:30:00"]


@pytest.mark.parametrize(
    ("window", "opening_at"),
    [
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
    ids=["night", "holiday"],
)
def test_the_first_minute_is_open_and_the_end_is_not(window, opening_at):
    """Hours past midnight belong to the day on which they begin; a holiday is closed from midnight to midnight."""
    found = {moment: opens(window, f"2026-06-{moment}", JOHANNESBURG) for moment in opening_at}
    assert found == {moment: opening and f"2026-06-{opening}:00" for moment, opening in opening_at.items()}


def answer(window, moment, destination):
    try:
        return window.closed_until(moment, destination)
    except InputError:
        return "never"


@given(windows(), st.lists(moments, max_size=2), st.lists(st.integers(0, 2 * 24 * 3600), max_size=6))
def test_what_it_remembers_is_what_it_would_find(window, begins, seconds):
    """Whatever it was asked before, for whom and in whatever order, it answers as a new one does."""
    window = replace(window, recipient_time_zone=True)
    moments = [begin + timedelta(seconds=later) for begin in begins for later in (0, *seconds)]
    asked = [(moment, destination) for moment in moments for destination in (None, "34612345678")]
    assert [answer(window, *each) for each in asked] == [answer(replace(window), *each) for each in asked]


def test_the_south_african_window_on_each_weekday():
    """No Sundays, Saturdays from 09:00 to 13:00, other days from 08:00 to 20:00; its representation makes it again."""
    window = SOUTH_AFRICAN_DIRECT_MARKETING
    open_minutes = {}
    for number in range(7):
        midnight = at("2026-06-01 00:00", JOHANNESBURG) + timedelta(days=number)
        minutes = [m for m in range(24 * 60) if window.closed_until(midnight + timedelta(minutes=m)) is None]
        open_minutes[f"{midnight:%a}"] = minutes and (minutes[0] / 60, (minutes[-1] + 1) / 60, len(minutes) / 60)
    workday = (8, 20, 12)
    assert open_minutes == {**dict.fromkeys(("Mon", "Tue", "Wed", "Thu", "Fri"), workday), "Sat": (9, 13, 4), "Sun": []}
    assert eval(repr(window)) == window


def test_south_african_holidays():
    """The public holidays of 2026 are closed, and so is the Monday after the one that is a Sunday; one can be added."""
    noons = [at("2026-01-01 10:00", JOHANNESBURG) + timedelta(days=number) for number in range(365)]
    window = replace(SOUTH_AFRICAN_DIRECT_MARKETING, holidays=["ZA", date(2026, 11, 4)])
    found = [f"{noon:%m-%d}" for noon in noons if window.closed_until(noon) and f"{noon:%a}" != "Sun"]
    # That of the local elections was declared in the course of the year: not each release of the library knows it.
    year = "01-01 03-21 04-03 04-06 04-27 05-01 06-16 08-10 09-24 11-04 12-16 12-25 12-26"
    assert found == year.split()


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
    """It opens by the recipient's clock, by several where all are open, by the window's own where there is none."""
    window = SendWindow("08:00", "20:00", JOHANNESBURG, recipient_time_zone=True)
    assert opens(window, "2026-01-14 05:30", destination=destination) == f"2026-01-14 {opening}:00"
    asked = [opens(window, f"2026-01-14 {moment}", destination="34612345678") for moment in ("18:59", "19:00")]
    assert asked == [None, "2026-01-15 08:00:00"]
    window = replace(window, recipient_time_zone=False)
    assert opens(window, "2026-01-14 05:30", destination=destination) == "2026-01-14 06:00:00"


DAYS = [date(2026, 1, 1) + timedelta(days=each) for each in range(500)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # From 09:00 to 17:00 is never in all of Russia's zones at once.
        ({"recipient_time_zone": True}, r"send_window: it never opens in all \d+ time zones of a number at once"),
        ({"holidays": DAYS}, "it never opens in Europe/Berlin, within 400 days from 2026-01-14"),
        *(
            ({"holidays": code}, f"the holidays library knows, such as 'ZA' or 'US-CA', or dates, not '{code}'")
            for code in ("XX", "US-ZZ")
        ),
    ],
)
def test_a_window_that_never_opens(changes, words):
    """It is an error when it is asked, without the number, and so are holidays that are unknown."""
    with pytest.raises(InputError, match=words) as caught:
        SendWindow("09:00", "17:00", BERLIN, **changes).closed_until(at("2026-01-14 12:00"), "79161234567")
    assert "916" not in str(caught.value)


NO_DAY = "weekdays must be named as 'mon' or 'Monday', or 0 for Monday to 6, not"
REFUSED = {
    "start must be a time of the day to the minute, such as '08:00', not": [
        {"start": start} for start in ("8 o'clock", time(8, 0, 30), time(8, tzinfo=timezone.utc))
    ],
    "end must be a time": [{"end": end} for end in ("24:01", "25:00", 20)],
    "from 08:00 to 08:00 are no hours": [{"end": "08:00"}],
    "from 24:00 to 20:00 are no hours": [{"start": "24:00"}],
    "recipient_time_zone must be True or False": [{"recipient_time_zone": "False"}],
    "timezone must be a name of the IANA time zone database": [
        {"timezone": name} for name in ("Europe/Atlantis", "Europe", "/etc/localtime", "", None)
    ],
    r"weekdays must be a list such as \['mon', 'tue'\]": [{"weekdays": days} for days in ([], "mon", 5)],
    f"{NO_DAY} 'mo'": [{"weekdays": ["mon", "mo"]}],
    f"{NO_DAY} 7": [{"weekdays": [7]}],
    "hours must be hours by weekday, such as {'sat': ": [{"hours": {"sat": "09:00"}}],
    r"the end in hours\['sat'\] must be a time": [{"hours": {"sat": ("09:00", "09")}}],
    "a day of hours must be named": [{"hours": {"sonntag": MORNING}}],
    "hours has Saturday twice": [{"hours": {"sat": MORNING, 5: MORNING}}],
    "hours has Saturday, which weekdays leaves out": [{"hours": {"sat": MORNING}, "weekdays": ["mon"]}],
    "holidays must be a country as in ISO 3166": [
        {"holidays": days}
        for days in ("South Africa", 2026, [datetime(2026, 1, 1)])  # noqa: DTZ001 - refused
    ],
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_read_is_refused_when_the_dag_is_parsed(words):
    """An argument that cannot be read is an error that names it; a moment without a time zone could be several."""
    for arguments in REFUSED[words]:
        with pytest.raises(InputError, match=f"^send_window: {words}"):
            SendWindow(**{"start": "08:00", "end": "20:00", "timezone": JOHANNESBURG, **arguments})
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


# Time zones of numbers


def possible_mobile_numbers(seed=4711):
    """Give numbers of each country that the library takes for valid mobile ones."""
    rng = random.Random(seed)
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        if (example := phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)) is None:
            continue
        digits = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.E164)[1:]
        for kept in range(len(str(example.country_code)), len(digits)):
            tried = digits[:kept] + "".join(rng.choices("0123456789", k=len(digits) - kept))
            number = phonenumbers.parse(f"+{tried}")
            if phonenumbers.is_valid_number(number):
                yield tried, number


def test_no_zone_of_a_mobile_number_is_left_out():
    """It has at least the zones that the library gives for it, whose clocks can be read; an area code tells a place."""
    names, missing = set(), {}
    for digits, number in possible_mobile_numbers():
        names |= {*zones_of(digits)}
        left_out = {*time_zones_for_number(number)} - {*zones_of(digits), "Etc/Unknown"}
        # In North America, as in the library any number that is not a mobile one.
        if number.country_code == 1:
            left_out = zones_of(digits) != time_zones_for_geographical_number(number)
        if left_out:
            missing[digits] = left_out
    assert missing == {}
    assert {find_zone(name).key for name in names} == names
    # The first digits of an Australian mobile number are those of no place.
    assert {"Australia/Perth", "Australia/Sydney"} <= {*zones_of("61412345678")}


@pytest.mark.parametrize(
    ("digits", "zones"),
    [
        ("27821234567", ("Africa/Johannesburg",)),
        ("27100000000", ("Africa/Johannesburg",)),  # no range that the library knows
        ("18765550123", ("America/Jamaica",)),
        ("5511961234567", ("America/Sao_Paulo",)),
        ("0821234567", ()),
        ("9991234567", ()),
    ],
)
def test_the_first_digits_tell_the_zone(digits, zones):
    """The country tells it, and the area code where mobile numbers have one; what no country begins with does not."""
    assert zones_of(digits) == zones
