"""Opening hours: whether the hours of a week are open at a moment, and when that changes next, by local time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING

from airflow_provider_sms.send_window.calendars import is_public_holiday

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = timedelta(days=1)
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
        today = wall.date()
        if self._is_holiday(today):
            return False
        minute = wall.hour * 60 + wall.minute
        hours = self.week[today.weekday()]
        if hours is not None and hours[0] <= minute < hours[1]:
            return True
        # The hours of yesterday may last past midnight.
        hours = self.week[today.weekday() - 1]
        return hours is not None and minute + MINUTES_A_DAY < hours[1] and not self._is_holiday(today - DAY)

    def next_change(self, moment: datetime, zone: tzinfo, days: int) -> datetime | None:
        """Return the moment, in UTC, at which the hours next open or close; None if they do neither in some days."""
        was_open = self.is_open(moment, zone)
        for number in range(days):
            begin = moment + number * DAY
            for turn in self._turns(begin, begin + DAY, zone):
                if self.is_open(turn, zone) != was_open:
                    return turn
        return None

    def _turns(self, after: datetime, until: datetime, zone: tzinfo) -> list[datetime]:
        """Return, in order, the only moments of a span at which the hours may open or close."""
        turns = {
            wall.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc)
            for wall in self._walls(after.astimezone(zone).date() - DAY, until.astimezone(zone).date() + DAY)
            for fold in (0, 1)
        }
        turns.add(_clock_change(after, until, zone))
        return sorted(turn for turn in turns if after < turn <= until)

    def _walls(self, first: date, last: date) -> Iterator[datetime]:
        """Yield the local times at which the hours of a day begin or end, and each midnight."""
        for number in range((last - first).days + 1):
            midnight = datetime.combine(first + number * DAY, time())
            yield midnight
            for minute in self.week[midnight.weekday()] or ():
                yield midnight + timedelta(minutes=minute)

    def _is_holiday(self, day: date) -> bool:
        return day in self.dates or any(is_public_holiday(country, day) for country in self.countries)


def _clock_change(after: datetime, until: datetime, zone: tzinfo) -> datetime:
    """Return the first moment in a span at which the offset from UTC differs; the end of the span if it never does."""
    offset = after.astimezone(zone).utcoffset()
    if until.astimezone(zone).utcoffset() == offset:
        return until
    # Clocks change at whole seconds.
    low = after.replace(microsecond=0)
    same, other = 0, int((until - low).total_seconds()) + 1
    while other - same > 1:
        middle = (same + other) // 2
        if (low + timedelta(seconds=middle)).astimezone(zone).utcoffset() == offset:
            same = middle
        else:
            other = middle
    return low + timedelta(seconds=other)
