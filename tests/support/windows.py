"""Send windows of any hours, and what they are by their definition."""

from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from airflow_provider_sms.send_window.window import SendWindow

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
    """Draw a window of any hours, days and clock."""
    days = draw(st.none() | st.sets(weekdays, min_size=1))
    start, end = draw(hours)
    differing = draw(st.none() | st.dictionaries(st.sampled_from(sorted(days or range(7))), hours, max_size=3))
    return SendWindow(start, end, draw(st.sampled_from(ZONES)), weekdays=days, hours=differing, holidays=draw(near))


def at(text, zone="UTC"):
    """Return a moment, written as the clock on the wall of a zone shows it."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


def opens(window, text, zone="UTC", destination=None):
    """Return the time on the wall of a zone at which a window opens next, seen from another there; None: it is open."""
    opening = window.closed_until(at(text, zone), destination)
    return None if opening is None else opening.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S")


def holds(window, moment):
    """Return, by the definition, whether a window is open: the clock on the wall is in the hours of some day."""
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


class ClosedOnce:
    """Hours that are over once, for some seconds since a condition holds, by default since somebody first asks."""

    recipient_time_zone = False

    def __init__(self, seconds, since=lambda: True):
        self.opening = None
        """When they begin again; None before they have ended."""
        self._seconds, self._since = seconds, since

    def __deepcopy__(self, memo):
        """Return the same hours, so that they end once, and a test reads what a copy of its task was told."""
        return self

    def closed_until(self, now, destination=None):
        if self.opening is None and self._since():
            self.opening = now + timedelta(seconds=self._seconds)
        return self.opening if self.opening and now < self.opening else None
