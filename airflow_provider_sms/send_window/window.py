"""The send window: the hours in which people may be texted, and the next moment at which they open.

First come the functions that read its fields as people write them, or raise an error that names the field, and then
:class:`SendWindow`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from typing import NamedTuple

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.send_window.calendars import find_zone, zones_of
from airflow_provider_sms.send_window.opening_hours import OpeningHours

Hours = tuple[time | str, time | str]

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SHORTEST_NAME = 3
"""Letters of the shortest abbreviation that stands for only one weekday."""

_TIME = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)", re.ASCII)
_COUNTRY = re.compile(r"[A-Z]{2}(-\w+)?", re.ASCII)


def read_time(field: str, value: time | str) -> str:
    """Return a time as ``HH:MM``, up to ``24:00``.

    :param field: the name of the field, for the error.
    :raises InputError: the value is not a time of day to the minute.
    """
    if isinstance(value, time) and value == time(value.hour, value.minute):
        return f"{value:%H:%M}"
    written = _TIME.fullmatch(value) if isinstance(value, str) else None
    if written is None or (written[1] == "24" and written[2] != "00"):
        raise InputError(
            f"send_window: {field} must be a time of the day to the minute, such as '08:00', not {value!r}"
        )
    return f"{int(written[1]):02}:{written[2]}"


def read_hours(fields: tuple[str, str], start: time | str, end: time | str) -> tuple[str, str]:
    """Return the beginning and the end of a day's hours as ``HH:MM``.

    :raises InputError: a value is not a time, or there is no time between the two.
    """
    begin, finish = read_time(fields[0], start), read_time(fields[1], end)
    if begin in {finish, "24:00"}:
        raise InputError(
            f"send_window: from {begin} to {finish} are no hours: {fields[0]} is the first minute, {fields[1]} the one "
            "after the last, and earlier than the first where it is on the next day; a whole day is '00:00' to '24:00'"
        )
    return begin, finish


def minutes(begin: str, finish: str) -> tuple[int, int]:
    """Return the minutes from midnight until hours begin and end, past 24 hours where they end on the next day."""
    first, last = (int(text[:2]) * 60 + int(text[3:]) for text in (begin, finish))
    return first, last if last > first else last + 24 * 60


def read_weekday(field: str, value: int | str) -> int:
    """Return the number of a weekday, 0 for Monday.

    :raises InputError: the value names no weekday.
    """
    if isinstance(value, str):
        name = value.strip().lower()
        if len(name) >= SHORTEST_NAME:
            for number, weekday in enumerate(WEEKDAYS):
                if weekday.startswith(name):
                    return number
    elif isinstance(value, int) and 0 <= value < len(WEEKDAYS):
        return int(value)
    raise InputError(f"send_window: {field} must be named as 'mon' or 'Monday', or 0 for Monday to 6, not {value!r}")


def read_weekdays(values: Collection[int | str] | None) -> tuple[int, ...] | None:
    """Return the numbers of weekdays, in order; None for None.

    :raises InputError: there is no value, or one names no weekday.
    """
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Iterable) or not (values := list(values)):
        raise InputError(
            f"send_window: weekdays must be a list such as ['mon', 'tue'], or None for all, not {values!r}"
        )
    return tuple(sorted({read_weekday("weekdays", value) for value in values}))


def read_days(
    values: Mapping[str, Hours] | Mapping[int, Hours] | Iterable[tuple[int | str, Hours]],
) -> tuple[tuple[int, tuple[str, str]], ...]:
    """Return the hours of single weekdays as pairs of number and hours, in order.

    :raises InputError: the values are not hours by weekday, or a weekday occurs twice.
    """
    try:
        days = [(day, start, end) for day, (start, end) in dict(values).items()]
    except (TypeError, ValueError):
        raise InputError(
            f"send_window: hours must be hours by weekday, such as {{'sat': ('09:00', '13:00')}}, not {values!r}"
        ) from None
    read = {}
    for day, start, end in days:
        number = read_weekday("a day of hours", day)
        if number in read:
            raise InputError(f"send_window: hours has {WEEKDAYS[number].capitalize()} twice")
        read[number] = read_hours((f"the start in hours[{day!r}]", f"the end in hours[{day!r}]"), start, end)
    return tuple(sorted(read.items()))


def read_holidays(value: str | Iterable[str | date] | None) -> tuple[str | date, ...] | None:
    """Return holidays as country codes and dates, each in order; None for None.

    :raises InputError: a value is neither.
    """
    if value is None:
        return None
    codes, dates = set(), set()
    values = [value] if isinstance(value, str) or not isinstance(value, Iterable) else value
    for each in values:
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


LOOK_AHEAD = 400
"""Days in which an opening is sought: more than a year, so that a yearly one is found."""


class _Spell(NamedTuple):
    """A span of time in which a window does not open or close, and when it opens; None where it is open."""

    since: datetime
    until: datetime
    closed_until: datetime | None


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
    _opening: OpeningHours = field(init=False, repr=False, compare=False)
    _spells: dict[tuple[str, ...], _Spell] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        usual = read_hours(("start", "end"), self.start, self.end)
        weekdays = read_weekdays(self.weekdays)
        holidays = read_holidays(self.holidays)
        days = None if self.hours is None else read_days(self.hours)
        find_zone(self.timezone)
        if not isinstance(self.recipient_time_zone, bool):
            raise InputError("send_window: recipient_time_zone must be True or False")

        opens = range(7) if weekdays is None else weekdays
        differing = dict(days or ())
        for day in differing:
            if day not in opens:
                raise InputError(f"send_window: hours has {WEEKDAYS[day].capitalize()}, which weekdays leaves out")
        opening = OpeningHours(
            week=tuple(minutes(*differing.get(day, usual)) if day in opens else None for day in range(7)),
            countries=tuple(each for each in holidays or () if isinstance(each, str)),
            dates=frozenset(each for each in holidays or () if isinstance(each, date)),
        )
        # One form for equal windows: they compare equal, and read the same wherever they are stored.
        read = {
            "start": usual[0],
            "end": usual[1],
            "weekdays": weekdays,
            "holidays": holidays,
            "hours": days,
            "_opening": opening,
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
        spell = self._spells.get(names)
        if spell is None or not spell.since <= now < spell.until:
            spell = self._spells[names] = self._find_spell(now, names)
        return spell.closed_until

    def _find_spell(self, now: datetime, names: tuple[str, ...]) -> _Spell:
        if now.tzinfo is None:
            raise InputError("send_window: a moment needs a time zone")
        now = now.astimezone(timezone.utc)
        opens = self._opens(now, names)
        if opens > now:
            return _Spell(now, until=opens, closed_until=opens)
        changes = [self._opening.next_change(now, find_zone(name), days=1) for name in names]
        return _Spell(now, until=min(change or now + timedelta(days=1) for change in changes), closed_until=None)

    def _opens(self, moment: datetime, names: tuple[str, ...]) -> datetime:
        """Return the first moment, from a given one on, at which the window is open in all of some time zones."""
        first, latest = moment, moment + timedelta(days=LOOK_AHEAD)
        zones = [find_zone(name) for name in names]
        while moment < latest:
            closed = next((zone for zone in zones if not self._opening.is_open(moment, zone)), None)
            if closed is None:
                return moment
            moment = self._opening.next_change(moment, closed, LOOK_AHEAD) or latest
        where = (
            names[0] if len(names) == 1 else f"all {len(names)} time zones of a number at once, {names[0]} among them"
        )
        raise InputError(f"send_window: it never opens in {where}, within {LOOK_AHEAD} days from {first:%Y-%m-%d}")


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
