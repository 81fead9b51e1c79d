"""Calendars: time zones, by name and by the first digits of a number, and public holidays by country.

``phonenumbers`` and ``holidays`` provide the data. They are imported only where needed: a DAG file is parsed every few
seconds, and most windows need neither.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from airflow_provider_sms.exceptions import InputError

if TYPE_CHECKING:
    from datetime import date

    from holidays import HolidayBase


NORTH_AMERICA = "1"
"""The country code of the United States, Canada and others."""


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
    # In North America mobile numbers look like any others, so the library does not call them geographical.
    local = {code for code in codes if is_number_type_geographical(PhoneNumberType.MOBILE, int(code))} | {NORTH_AMERICA}
    return {
        prefix: tuple(zones)
        for prefix, zones in TIMEZONE_DATA.items()
        if prefix in codes or any(prefix[:length] in local for length in (1, 2, 3))
    }


@cache
def is_public_holiday(code: str, day: date) -> bool:
    """Return whether a day is a public holiday, or the day on which one is observed.

    :param code: ISO 3166 country, or country and subdivision: ``"ZA"``, ``"US-CA"``.
    :raises InputError: the library does not know the country or the subdivision.
    """
    return day in _calendar(code)


@cache
def _calendar(code: str) -> HolidayBase:
    import holidays  # takes a tenth of a second, which no DAG file should cost

    country, _, subdivision = code.partition("-")
    try:
        return holidays.country_holidays(country, subdiv=subdivision or None)
    except NotImplementedError:
        raise InputError(
            f"send_window: holidays must be a country as in ISO 3166 that the holidays library knows, such as 'ZA' or "
            f"'US-CA', or dates, not {code!r}"
        ) from None
