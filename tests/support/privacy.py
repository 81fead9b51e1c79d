"""The people of a run, and whether they can be found in what Airflow keeps and shows."""

from __future__ import annotations

import re

from support.whole import TOKEN

NUMBER = re.compile(r"(?<![\d.])(?:27|0)?(\d{9})(?!\d)")
"""A number of somebody's, however it is written; no part of a fraction or of a longer one."""


class People:
    """Those who were texted: what may stand nowhere.

    A group's text is the template itself, which is shown as it is.

    :param taken: the accepted messages.
    """

    def __init__(self, taken):
        theirs = [message for message in taken if message.kind == "bulk"]
        self._numbers = {message.destination[-9:] for message in theirs}
        self._texts = {message.content for message in theirs}
        self.count = len(self._numbers)

    def are_numbers_in(self, text):
        """Whether a number of theirs is there; not which."""
        return not self._numbers.isdisjoint(NUMBER.findall(text))

    def texts_in(self, text):
        """Return how many of the texts that were made for one of them are there."""
        return sum(each in text for each in self._texts)

    def stand_in(self, text):
        """Whether a number of theirs, a text that was made for one of them, or the token is there; not which."""
        return TOKEN in text or self.are_numbers_in(text) or bool(self.texts_in(text))


def logs_of(home):
    """Return the logs of tasks, and what the scheduler, the triggerer and the web server print."""
    return [path for path in (*home.glob("*.out"), *(home / "logs").rglob("*.log")) if path.is_file()]
