"""Public holidays of a country, as the ``holidays`` library knows them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import InputError

if TYPE_CHECKING:
    from datetime import date

    from holidays import HolidayBase


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
