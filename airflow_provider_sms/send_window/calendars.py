"""Time zones: by their name, and those in which the owner of a number may be."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from airflow_provider_sms.exceptions import InputError

if TYPE_CHECKING:
    from datetime import date

    from holidays import HolidayBase


NORTH_AMERICA = "1"


@cache
def find_zone(name: str) -> ZoneInfo:
    """Find a time zone by its name in the IANA database.

    :raises InputError: there is none.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, TypeError, ValueError):
        raise InputError(
            f"send_window: timezone must be a name of the IANA time zone database, such as 'Africa/Johannesburg', "
            f"not {name!r}"
        ) from None


def zones_of(destination: str) -> tuple[str, ...]:
    """Name the time zones in which a number may be, by its first digits; none where these say nothing.

    A mobile number mostly tells its country only: then these are all zones of the country. It tells more in the
    countries in which mobile numbers have an area code.

    :param destination: digits with country code.
    """
    zones = _zones_by_prefix()
    for length in _lengths(destination[:3]):
        found = zones.get(destination[:length])
        if found is not None:
            return found
    return ()


@cache
def _lengths(begin: str) -> tuple[int, ...]:
    """Give the lengths of the prefixes that begin as a number does, or that it begins with: longest first."""
    return tuple(sorted({len(prefix) for prefix in _zones_by_prefix() if prefix[:3] == begin[: len(prefix)]})[::-1])


@cache
def _zones_by_prefix() -> dict[str, tuple[str, ...]]:
    """Take from the data of ``phonenumbers`` what holds for mobile numbers.

    Its ``time_zones_for_number`` judges the whole number: that is slow, and it has no zone for a number in a range that
    is newer than its data.
    """
    # Most windows have one clock, and DAG files are parsed every few seconds: only for those who need it.
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneNumberType, is_number_type_geographical
    from phonenumbers.tzdata import TIMEZONE_DATA

    codes = {str(code) for code in COUNTRY_CODE_TO_REGION_CODE}
    # In North America mobile numbers cannot be told from others, so that the library has no answer for the code.
    local = {code for code in codes if is_number_type_geographical(PhoneNumberType.MOBILE, int(code))} | {NORTH_AMERICA}
    return {
        prefix: tuple(zones)
        for prefix, zones in TIMEZONE_DATA.items()
        if prefix in codes or any(prefix[:length] in local for length in (1, 2, 3))
    }


def is_public_holiday(code: str, day: date) -> bool:
    """Say whether a day is a public holiday, or the day on which one is observed.

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
