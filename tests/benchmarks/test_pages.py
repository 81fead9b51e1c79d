from __future__ import annotations

import pytest

from benchmarks.pages import Asking, Look, Pages, Watcher
from benchmarks.processes import WrongError


class Shown(Pages):
    """Pages with immediate responses.

    :param listed: content of the list.
    :param status: status of every page.
    """

    def __init__(self, listed, status=200):
        self.asked = []
        self._listed = listed
        self._status = status

    def look(self, path):
        self.asked.append(path)
        return Look(self._status, 0.5, self._listed)


def watcher(pages):
    return Watcher(pages, [Asking(1.0), Asking(1.0, "watched 1")])


def test_both_pages_are_seen_however_short_a_send_is():
    """Every open page is loaded at least once, and finds the campaign's URL in the list."""
    pages = Shown('<a href="/sms/campaigns/7">')
    two = watcher(pages)
    with two.looking():
        pass
    assert {"/", "/#name=watched%201", "/campaigns/7"} == set(pages.asked)
    assert [{0.5}, {0.5}] == [set(seconds) for seconds in two.seconds]


@pytest.mark.parametrize(
    ("pages", "says"),
    [(Shown('<a href="/sms/campaigns/7">', 500), "500"), (Shown("nothing"), "never loaded")],
    ids=["a page fails", "a page is not there"],
)
def test_pages_that_were_not_seen_are_noticed(pages, says):
    """A send whose pages failed or were never loaded has no figure."""
    with pytest.raises(WrongError, match=says), watcher(pages).looking():
        pass
