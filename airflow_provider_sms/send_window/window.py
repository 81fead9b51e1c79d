"""The send window: the hours in which people may be texted, and the next moment at which they open.

``phonenumbers`` and ``holidays`` are imported only where needed: a DAG file is parsed every few seconds, and most
windows need neither.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from airflow_provider_sms.exceptions import InputError

if TYPE_CHECKING:
    from holidays import HolidayBase

Hours = tuple[time | str, time | str]

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SHORTEST_NAME = 3
"""Letters of the shortest abbreviation that stands for only one weekday."""
LOOK_AHEAD = 400
"""Days in which an opening is sought: more than a year, so that a yearly one is found."""

_MINUTE, _MINUTES_A_DAY = timedelta(minutes=1), 24 * 60
_TIME = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)", re.ASCII)
_COUNTRY = re.compile(r"[A-Z]{2}(-\w+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class SendWindow:
    """The hours in which people may be texted.

    The clock on the wall decides: a window from 02:30 opens at 03:00 on the day on which the clock goes from 02:00 to
    03:00. Hours that end earlier than they begin end on the next day, and belong to the weekday on which they begin:
    with ``weekdays=["fri"]`` a window from 20:00 to 06:00 is open until Saturday, 06:00. On a holiday it is closed
    from midnight to midnight all the same, and hours that would begin on it do not.

    :param start: the time from which messages are sent, ``datetime.time`` or ``"HH:MM"``.
    :param end: the time from which no message is sent, ``datetime.time`` or ``"HH:MM"``, up to ``"24:00"``.
    :param timezone: the time zone of the clock: a name in the IANA database, such as ``"Africa/Johannesburg"``.
    :param weekdays: the days on which it opens: numbers from 0 for Monday to 6, or English names, which may be
        abbreviated to three letters or more. None means every day.
    :param holidays: the days on which it is closed: an ISO 3166 country or subdivision that the ``holidays`` library
        knows, ``"ZA"`` or ``"US-CA"``; a collection of ``datetime.date``; or a collection of both. Give a holiday that
        was declared after the installed release of that library as a date. None means no day.
    :param hours: start and end on weekdays that differ, such as ``{"sat": ("09:00", "13:00")}``. None means that the
        hours are the same on all days.
    :param recipient_time_zone: use the recipient's clock instead, whose time zone the first digits of the number tell.
        Where they tell several, the window must be open in all of them: most mobile numbers tell only a country. Where
        they tell none, ``timezone`` applies.
    :raises InputError: a value cannot be read, or there is no such time zone.
    """

    start: time | str
    end: time | str
    timezone: str
    weekdays: Collection[int | str] | None = None
    holidays: str | Iterable[str | date] | None = None
    hours: Mapping[str, Hours] | Mapping[int, Hours] | Iterable[tuple[int | str, Hours]] | None = None
    recipient_time_zone: bool = False
    _week: tuple[tuple[int, int] | None, ...] = field(init=False, repr=False, compare=False)
    """For each weekday from Monday, the first minute and the one after the last, counted from midnight; past 24 hours
    where the hours end on the next day. None means closed."""
    _found: dict[tuple[str, ...], tuple[datetime, datetime | None]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """What was found last, by time zones: in which minute, and when the window opens; None means that it is open."""

    def __post_init__(self) -> None:
        usual = _read_hours(("start", "end"), self.start, self.end)
        weekdays = None if self.weekdays is None else _read_weekdays(self.weekdays)
        holidays = None if self.holidays is None else _read_holidays(self.holidays)
        days = None if self.hours is None else _read_days(self.hours)
        find_zone(self.timezone)
        if not isinstance(self.recipient_time_zone, bool):
            raise InputError("send_window: recipient_time_zone must be True or False")
        opens, differing = range(7) if weekdays is None else weekdays, dict(days or ())
        for day in differing:
            if day not in opens:
                raise InputError(f"send_window: hours has {WEEKDAYS[day].capitalize()}, which weekdays leaves out")
        # One form for equal windows: they compare equal, and read the same wherever they are stored.
        read = {
            "start": usual[0],
            "end": usual[1],
            "weekdays": weekdays,
            "holidays": holidays,
            "hours": days,
            "_week": tuple(_minutes(*differing.get(day, usual)) if day in opens else None for day in range(7)),
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)

    def closed_until(self, now: datetime, destination: str | None = None) -> datetime | None:
        """Return the moment from which people may be texted again; None where they may be texted now.

        :param now: a moment, with its time zone.
        :param destination: a number whose clock may decide, digits with country code. None means the clock of
            ``timezone``.
        :returns: in UTC.
        :raises InputError: the window does not open within 400 days, or the country of the holidays is unknown.
        """
        names = (zones_of(destination) if self.recipient_time_zone and destination else ()) or (self.timezone,)
        if now.utcoffset() is None:
            raise InputError("send_window: a moment needs a time zone")
        since, opening = self._found.get(names) or (now, now)
        if not since <= now < (opening or since + _MINUTE):
            minute = now.astimezone(timezone.utc).replace(second=0, microsecond=0)
            since, opening = self._found[names] = minute, self._find(minute, names)
        return opening

    def _find(self, now: datetime, names: tuple[str, ...]) -> datetime | None:
        """Return when the window opens in all of some time zones, seen from a whole minute; None where it is open.

        Only the clock on the wall decides: hours that begin in an hour that is skipped open when it is over, and hours
        in an hour that occurs twice are open twice. Hours begin, and clocks change, at whole minutes of UTC.
        """
        zones = [find_zone(name) for name in names]
        moment = now
        while moment < now + timedelta(days=LOOK_AHEAD):
            closed = max(self._minutes_closed(moment, zone) for zone in zones)
            if not closed:
                return moment if moment > now else None
            moment += closed * _MINUTE
        where = names[0] if len(names) == 1 else f"all {len(names)} time zones of a number at once, {names[0]} too"
        raise InputError(f"send_window: it never opens in {where}, within {LOOK_AHEAD} days from {now:%Y-%m-%d}")

    def _minutes_closed(self, moment: datetime, zone: tzinfo) -> int:
        """Return for how many minutes at least the window stays closed by a clock; 0 means that it is open."""
        wall = moment.astimezone(zone)
        minute, today, weekday = wall.hour * 60 + wall.minute, wall.date(), wall.weekday()
        hours, earlier = self._week[weekday], self._week[weekday - 1]
        if hours is not None and hours[0] <= minute < hours[1]:
            is_open = not self._is_holiday(today)
        else:  # the hours of yesterday may last past midnight
            lasts = earlier is not None and minute + _MINUTES_A_DAY < earlier[1]
            is_open = lasts and not (self._is_holiday(today) or self._is_holiday(today - timedelta(days=1)))
        if is_open:
            return 0
        ahead = (hours[0] if hours is not None and minute < hours[0] else _MINUTES_A_DAY) - minute
        # Where the clock is changed before that, minute by minute.
        return ahead if (moment + ahead * _MINUTE).astimezone(zone).utcoffset() == wall.utcoffset() else 1

    def _is_holiday(self, day: date) -> bool:
        # Read by __post_init__: codes of countries, and dates.
        return any(day in _calendar(each) if isinstance(each, str) else day == each for each in self.holidays or ())


def _read_time(field: str, value: time | str) -> str:
    """Return a time as ``HH:MM``, up to ``24:00``."""
    if isinstance(value, time) and value == time(value.hour, value.minute):
        return f"{value:%H:%M}"
    written = _TIME.fullmatch(value) if isinstance(value, str) else None
    if written is None or (written[1] == "24" and written[2] != "00"):
        raise InputError(
            f"send_window: {field} must be a time of the day to the minute, such as '08:00', not {value!r}"
        )
    return f"{int(written[1]):02}:{written[2]}"


def _read_hours(fields: tuple[str, str], start: time | str, end: time | str) -> tuple[str, str]:
    """Return the beginning and the end of a day's hours as ``HH:MM``."""
    begin, finish = _read_time(fields[0], start), _read_time(fields[1], end)
    if begin in {finish, "24:00"}:
        raise InputError(
            f"send_window: from {begin} to {finish} are no hours: {fields[0]} is the first minute, {fields[1]} the one "
            "after the last, and earlier than the first where it is on the next day; a whole day is '00:00' to '24:00'"
        )
    return begin, finish


def _minutes(begin: str, finish: str) -> tuple[int, int]:
    """Return the minutes from midnight until hours begin and end, past 24 hours where they end on the next day."""
    first, last = (int(text[:2]) * 60 + int(text[3:]) for text in (begin, finish))
    return first, last if last > first else last + _MINUTES_A_DAY


def _read_weekday(field: str, value: int | str) -> int:
    """Return the number of a weekday, 0 for Monday."""
    if isinstance(value, str) and len(name := value.strip().lower()) >= SHORTEST_NAME:
        for number, weekday in enumerate(WEEKDAYS):
            if weekday.startswith(name):
                return number
    if isinstance(value, int) and 0 <= value < len(WEEKDAYS):
        return int(value)
    raise InputError(f"send_window: {field} must be named as 'mon' or 'Monday', or 0 for Monday to 6, not {value!r}")


def _read_weekdays(values: Collection[int | str]) -> tuple[int, ...]:
    """Return the numbers of weekdays, in order."""
    if isinstance(values, str) or not isinstance(values, Iterable) or not (values := list(values)):
        raise InputError(
            f"send_window: weekdays must be a list such as ['mon', 'tue'], or None for all, not {values!r}"
        )
    return tuple(sorted({_read_weekday("weekdays", value) for value in values}))


def _read_days(
    values: Mapping[str, Hours] | Mapping[int, Hours] | Iterable[tuple[int | str, Hours]],
) -> tuple[tuple[int, tuple[str, str]], ...]:
    """Return the hours of single weekdays as pairs of number and hours, in order."""
    try:
        days = [(day, start, end) for day, (start, end) in dict(values).items()]
    except (TypeError, ValueError):
        raise InputError(
            f"send_window: hours must be hours by weekday, such as {{'sat': ('09:00', '13:00')}}, not {values!r}"
        ) from None
    read: dict[int, tuple[str, str]] = {}
    for day, start, end in days:
        number = _read_weekday("a day of hours", day)
        if number in read:
            raise InputError(f"send_window: hours has {WEEKDAYS[number].capitalize()} twice")
        read[number] = _read_hours((f"the start in hours[{day!r}]", f"the end in hours[{day!r}]"), start, end)
    return tuple(sorted(read.items()))


def _read_holidays(value: str | Iterable[str | date]) -> tuple[str | date, ...]:
    """Return holidays as country codes and dates, each in order."""
    codes, dates = set(), set()
    for each in [value] if isinstance(value, str) or not isinstance(value, Iterable) else value:
        if isinstance(each, str) and _COUNTRY.fullmatch(each.upper()):
            codes.add(each.upper())
        elif isinstance(each, date) and not isinstance(each, datetime):
            # Subclasses in other libraries compare as dates do, but have another repr.
            dates.add(date(each.year, each.month, each.day))
        else:
            raise InputError(
                "send_window: holidays must be a country as in ISO 3166, such as 'ZA' or 'US-CA', or a list of "
                f"datetime.date, or of both, not {each!r}"
            )
    return (*sorted(codes), *sorted(dates))


@cache
def find_zone(name: str) -> ZoneInfo:
    """Return a time zone by its name in the IANA database.

    :raises InputError: there is no such time zone.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, TypeError, ValueError):
        raise InputError(
            f"send_window: timezone must be a name of the IANA time zone database, such as 'Africa/Johannesburg', "
            f"not {name!r}"
        ) from None


def zones_of(destination: str) -> tuple[str, ...]:
    """Return the names of the time zones in which a number may be, by its first digits; none where these do not tell.

    Most mobile numbers tell only their country, and so all zones of the country. They tell more in countries where
    mobile numbers have an area code.

    :param destination: digits with country code.
    """
    zones = _zones_by_prefix()
    prefixes = (destination[:length] for length in range(len(destination), 0, -1))
    return next((zones[prefix] for prefix in prefixes if prefix in zones), ())


@cache
def _zones_by_prefix() -> dict[str, tuple[str, ...]]:
    """Return the time zones of prefixes that ``phonenumbers`` knows, where they hold for mobile numbers.

    Its ``time_zones_for_number`` parses the whole number: that is slow, and finds no zone for a number in a range newer
    than its data.
    """
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneNumberType, is_number_type_geographical
    from phonenumbers.tzdata import TIMEZONE_DATA

    codes = {str(code) for code in COUNTRY_CODE_TO_REGION_CODE}
    # In North America (1) mobile numbers look like any others, so the library does not call them geographical.
    local = {"1"} | {code for code in codes if is_number_type_geographical(PhoneNumberType.MOBILE, int(code))}
    return {
        prefix: tuple(zones)
        for prefix, zones in TIMEZONE_DATA.items()
        if prefix in codes or any(prefix[:length] in local for length in (1, 2, 3))
    }


@cache
def _calendar(code: str) -> HolidayBase:
    """Return the public holidays, and the days on which they are observed, of an ISO 3166 country or subdivision."""
    import holidays  # takes a tenth of a second, which no DAG file should cost

    country, _, subdivision = code.partition("-")
    try:
        return holidays.country_holidays(country, subdiv=subdivision or None)
    except NotImplementedError:
        raise InputError(
            f"send_window: holidays must be a country as in ISO 3166 that the holidays library knows, such as 'ZA' or "
            f"'US-CA', or dates, not {code!r}"
        ) from None


SOUTH_AFRICAN_DIRECT_MARKETING = SendWindow(
    start="08:00",
    end="20:00",
    timezone="Africa/Johannesburg",
    weekdays=("mon", "tue", "wed", "thu", "fri", "sat"),
    holidays="ZA",
    hours={"sat": ("09:00", "13:00")},
)
"""The times at which a supplier may contact consumers at home for direct marketing in South Africa.

No Sundays and no public holidays, Saturdays from 09:00 to 13:00, other days from 08:00 to 20:00: the times that the
regulations to the Consumer Protection Act 68 of 2008 give for its section 12. Information, not legal advice. A public
holiday that was declared at short notice is known only to a recent enough release of the ``holidays`` library; add it
with ``dataclasses.replace(SOUTH_AFRICAN_DIRECT_MARKETING, holidays=["ZA", datetime.date(2026, 11, 4)])``.
"""
