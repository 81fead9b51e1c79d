"""Opening hours: whether the hours of a week are open at a moment, and when that changes next, by local time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from airflow_provider_sms.send_window.calendars import is_public_holiday

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
MINUTES_A_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class OpeningHours:
    """The hours of a week, and the days that are closed all the same.

    Only the clock on the wall decides: the hours are open whenever the clock shows a time within them. So hours that
    begin in an hour that is skipped open when it is over, and hours in an hour that occurs twice are open twice.

    :param week: for each weekday from Monday, the first minute and the one after the last, counted from midnight; past
        24 hours where the hours end on the next day. None means closed.
    :param countries: ISO 3166 codes of the countries on whose public holidays the hours are closed.
    :param dates: further closed days.
    """

    week: tuple[tuple[int, int] | None, ...]
    countries: tuple[str, ...] = ()
    dates: frozenset[date] = frozenset()

    def is_open(self, moment: datetime, zone: tzinfo) -> bool:
        """Return whether the hours are open at a moment."""
        wall = moment.astimezone(zone)
        minute, weekday = wall.hour * 60 + wall.minute, wall.weekday()
        hours = self.week[weekday]
        if hours is not None and hours[0] <= minute < hours[1]:
            return not self._is_holiday(wall.date())
        # The hours of yesterday may last past midnight.
        hours = self.week[weekday - 1]
        if hours is None or minute + MINUTES_A_DAY >= hours[1]:
            return False
        return not (self._is_holiday(wall.date()) or self._is_holiday(wall.date() - DAY))

    def next_change(self, moment: datetime, zone: tzinfo, days: int) -> datetime | None:
        """Return the moment at which the hours next open or close; None if they do neither in some days.

        Hours begin, and clocks change, at whole minutes of UTC.

        :param moment: in UTC.
        """
        was_open = self.is_open(moment, zone)
        minute = moment.replace(second=0, microsecond=0)
        for _ in range(days * MINUTES_A_DAY):
            minute += MINUTE
            if self.is_open(minute, zone) != was_open:
                return minute
        return None

    def _is_holiday(self, day: date) -> bool:
        return day in self.dates or any(is_public_holiday(country, day) for country in self.countries)
