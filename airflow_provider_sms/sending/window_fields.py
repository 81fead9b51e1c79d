"""What people write into a send window, brought to one form, or an error that names the field."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, time

from airflow_provider_sms.exceptions import InputError

Hours = tuple[time | str, time | str]

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SHORTEST_NAME = 3

_TIME = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)", re.ASCII)
_COUNTRY = re.compile(r"[A-Z]{2}(-\w+)?", re.ASCII)


def read_time(field: str, value: time | str) -> str:
    """Bring a time to ``HH:MM``, up to ``24:00``."""
    if isinstance(value, time) and value == time(value.hour, value.minute):
        return f"{value:%H:%M}"
    written = _TIME.fullmatch(value) if isinstance(value, str) else None
    if written is None or (written[1] == "24" and written[2] != "00"):
        raise InputError(
            f"send_window: {field} must be a time of the day to the minute, such as '08:00', not {value!r}"
        )
    return f"{int(written[1]):02}:{written[2]}"


def read_hours(fields: tuple[str, str], start: time | str, end: time | str) -> tuple[str, str]:
    """Bring the begin and the end of a day's hours to ``HH:MM``."""
    begin, finish = read_time(fields[0], start), read_time(fields[1], end)
    if begin in {finish, "24:00"}:
        raise InputError(
            f"send_window: from {begin} to {finish} are no hours: {fields[0]} is the first minute, {fields[1]} the one "
            "after the last, and earlier than the first where it is on the next day; a whole day is '00:00' to '24:00'"
        )
    return begin, finish


def minutes(begin: str, finish: str) -> tuple[int, int]:
    """Count the minutes from midnight until hours begin and end, past 24 hours where they end on the next day."""
    first, last = (int(text[:2]) * 60 + int(text[3:]) for text in (begin, finish))
    return first, last if last > first else last + 24 * 60


def read_weekday(field: str, value: int | str) -> int:
    """Bring a weekday to its number, 0 for Monday."""
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
    """Bring weekdays to their numbers, in order."""
    if values is None:
        return None
    if isinstance(values, str) or not values:
        raise InputError(
            f"send_window: weekdays must be a list such as ['mon', 'tue'], or None for all, not {values!r}"
        )
    return tuple(sorted({read_weekday("weekdays", value) for value in values}))


def read_days(
    values: Mapping[str, Hours] | Mapping[int, Hours] | Iterable[tuple[int | str, Hours]],
) -> tuple[tuple[int, tuple[str, str]], ...]:
    """Bring the hours of single weekdays to pairs of number and hours, in order."""
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
    """Bring holidays to country codes and dates, each in order."""
    if value is None:
        return None
    codes, dates = set(), set()
    values = [value] if isinstance(value, str) or not isinstance(value, Iterable) else value
    for each in values:
        if isinstance(each, str) and _COUNTRY.fullmatch(each.upper()):
            codes.add(each.upper())
        elif isinstance(each, date) and not isinstance(each, datetime):
            # Those of other libraries compare as dates do, and are written in another way.
            dates.add(date(each.year, each.month, each.day))
        else:
            raise InputError(
                "send_window: holidays must be a country as in ISO 3166, such as 'ZA' or 'US-CA', or a list of "
                f"datetime.date, or of both, not {each!r}"
            )
    return (*sorted(codes), *sorted(dates))
