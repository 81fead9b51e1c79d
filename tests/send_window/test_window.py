import copy
import pickle
import subprocess
import sys
from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.windows import BERLIN, JOHANNESBURG, NEW_YORK, at, moments, opens, windows

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.send_window.window import SOUTH_AFRICAN_DIRECT_MARKETING, SendWindow

MORNING = ("09:00", "13:00")


def answer(window, moment, destination):
    try:
        return window.closed_until(moment, destination)
    except InputError:
        return "never"


@pytest.mark.slow
@given(windows(), st.lists(moments, max_size=2), st.lists(st.integers(0, 2 * 24 * 3600), max_size=6))
def test_what_it_remembers_is_what_it_would_find(window, begins, seconds):
    """Whatever it was asked before, for whom and in whatever order, it answers as a new one does."""
    window = replace(window, recipient_time_zone=True)
    moments = [begin + timedelta(seconds=later) for begin in begins for later in (0, *seconds)]
    asked = [(moment, destination) for moment in moments for destination in (None, "34612345678")]
    assert [answer(window, *each) for each in asked] == [answer(copy.copy(window), *each) for each in asked]


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


def test_a_yearly_opening_is_found():
    """One day in a year is enough."""
    window = SendWindow("08:00", "20:00", "UTC", holidays=DAYS[:365])
    assert opens(window, "2026-01-01 12:00") == "2027-01-01 08:00:00"


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
