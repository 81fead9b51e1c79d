from __future__ import annotations

import itertools

import pytest

from airflow_provider_sms.sandbox import inbox as module
from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.inbox import Inbox
from airflow_provider_sms.sandbox.state import SandboxState
from airflow_provider_sms.sandbox.submissions import Submission

ANNA, BEN, LONDON = "27820000001", "27600000002", "447700900123"


@pytest.fixture
def state():
    return SandboxState(SandboxConfig(balance=1_000_000))


@pytest.fixture
def inbox(state):
    return Inbox(state)


@pytest.fixture
def accept(state):
    """Accept messages as one request, and give its event id."""

    def accept_all(*messages):
        return state.accept(Submission("bulk", tuple(messages)), state.next_number()).event_id

    return accept_all


def walk(page_from):
    """Give the rows of all pages, one after the other."""
    before, rows = None, []
    while True:
        page = page_from(before)
        rows += page["rows"]
        before = page["next"]
        if before is None:
            return rows


def test_requests_come_newest_first_page_by_page(client):
    """Pages of requests follow each other without a gap, each request with what was charged for it."""
    for number in range(7):
        client.bulk((ANNA, f"Text {number}"), (BEN, f"Text {number}"))
    inbox = Inbox(client.sandbox.state)
    rows = walk(lambda before: inbox.requests(before, 3))
    assert [row["number"] for row in rows] == [7, 6, 5, 4, 3, 2, 1]
    assert {(row["accepted"], row["parts"], row["cost"]) for row in rows} == {(2, 2, 1.35)}
    assert inbox.requests(None, 3)["total"] == 7


def test_older_pages_stand_still_while_requests_arrive(client):
    """What arrives meanwhile moves no row from one page to another."""
    for number in range(4):
        client.bulk((ANNA, f"Text {number}"))
    inbox = Inbox(client.sandbox.state)
    before = inbox.requests(None, 2)["next"]
    client.bulk((ANNA, "Later"))
    assert [row["number"] for row in inbox.requests(before, 2)["rows"]] == [2, 1]


def test_a_request_has_its_own_messages_only(inbox, accept):
    """The messages of a request come in its order, from ``offset``, and of one that is not known there are none."""
    accept((ANNA, "First"))
    accept(*((ANNA, f"Text {number}") for number in range(5)))
    accept((BEN, "Last"))
    page = inbox.messages_of(2, 1, 3)
    assert [row["content"] for row in page["rows"]] == ["Text 1", "Text 2", "Text 3"]
    assert (page["total"], page["next"]) == (5, 4)
    assert [row["content"] for row in inbox.messages_of(2, 4, 3)["rows"]] == ["Text 4"]
    assert inbox.messages_of(2, 4, 3)["next"] is None
    assert (inbox.messages_of(99, 0, 3)["rows"], inbox.messages_of(2, 9, 3)["rows"]) == ([], [])


def test_numbers_come_with_the_latest_text_first(inbox, accept):
    """A number moves to the top when something arrives for it, with the beginning of that text."""
    accept((ANNA, "One"), (BEN, "Two"), (LONDON, "Three"))
    assert [row["destination"] for row in inbox.numbers(None, 10)["rows"]] == [LONDON, BEN, ANNA]
    accept((ANNA, "Four"))
    rows = inbox.numbers(None, 10)["rows"]
    assert [(row["destination"], row["latest"], row["messages"]) for row in rows] == [
        (ANNA, "Four", 2),
        (LONDON, "Three", 1),
        (BEN, "Two", 1),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
def test_pages_of_numbers_have_each_number_once(inbox, accept, size):
    """Whatever the size of a page, all of them together have every number exactly once."""
    numbers = [f"2782{place:07}" for place in range(7)]
    accept(*((number, "Hello") for number in numbers))
    rows = walk(lambda before: inbox.numbers(before, size))
    assert [row["destination"] for row in rows] == numbers[::-1]


def test_the_texts_of_a_number_come_newest_first(inbox, accept):
    """Pages of texts to a number have all of its texts and none of others; an unknown number has none."""
    for number in range(5):
        accept((ANNA, f"Text {number}"), (BEN, "Another"))
    rows = walk(lambda before: inbox.messages_to(ANNA, before, 2))
    assert [row["content"] for row in rows] == [f"Text {number}" for number in (4, 3, 2, 1, 0)]
    assert [row["key"] for row in rows] == [4, 3, 2, 1, 0]
    assert inbox.messages_to("27829999999", None, 2)["rows"] == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("hello", ["HELLO again", "Hello"]),
        ("straße", ["STRASSE 5"]),
        ("7700900", ["STRASSE 5"]),
        ("+44 7700 900-123", ["STRASSE 5"]),
        ("082 000 0001", ["HELLO again", "Hello"]),
        ("0027820000001", ["HELLO again", "Hello"]),
        ("0", ["STRASSE 5", "HELLO again", "Hello"]),
        ("5", ["STRASSE 5"]),
        ("nowhere", []),
        ("99999999999999999999999999", []),
    ],
)
def test_messages_are_found_by_text_and_number(inbox, accept, query, found):
    """Capitals do not matter, nor do separators and zeros before a number; the newest comes first."""
    accept((ANNA, "Hello"))
    accept((ANNA, "HELLO again"), (LONDON, "STRASSE 5"))
    assert [row["content"] for row in inbox.search(query, None, 10)["rows"]] == found


def test_messages_are_found_by_event_id(inbox, accept):
    """An event id finds the messages of its request, a part of one does not."""
    accept((ANNA, "Other"))
    event_id = accept((ANNA, "One"), (BEN, "Two"))
    rows = inbox.search(str(event_id), None, 10)["rows"]
    assert [(row["content"], row["event_id"]) for row in rows] == [("Two", str(event_id)), ("One", str(event_id))]
    assert inbox.search(str(event_id)[:-1], None, 10)["rows"] == []


def test_a_search_goes_on_where_it_stopped(inbox, accept):
    """A page of what was found is followed by the rest."""
    accept(*((ANNA, f"Text {number}") for number in range(9)))
    rows = walk(lambda before: inbox.search("text", before, 4))
    assert [row["content"] for row in rows] == [f"Text {number}" for number in range(8, -1, -1)]


def test_one_search_looks_at_a_bounded_number_of_messages(inbox, accept):
    """However many there are, one call ends after a part of them and says where the next one begins."""
    accept((ANNA, "needle"))
    per_request = 100
    for _ in range(module.SEARCHED // per_request):
        accept(*((ANNA, f"hay {number}") for number in range(per_request)))
    first = inbox.search("needle", None, 10)
    assert (first["rows"], first["next"]) == ([], 1)
    second = inbox.search("needle", first["next"], 10)
    assert ([row["content"] for row in second["rows"]], second["next"]) == (["needle"], None)


def test_all_is_filed_however_much_has_arrived(inbox, accept, state):
    """More than one batch of messages and of requests is filed at once."""
    for first in range(0, module.BATCH + 200, 100):
        accept(*((f"2782{first + place:07}", "Hello") for place in range(100)))
    page = inbox.numbers(None, 1)
    assert (page["total"], page["rows"][0]["destination"]) == (module.BATCH + 200, f"2782{module.BATCH + 199:07}")


def test_after_a_reset_nothing_of_before_is_there(inbox, accept, state):
    """A reset begins another epoch, in which places are counted anew."""
    accept((ANNA, "Before"), (BEN, "Before"))
    before = inbox.numbers(None, 10)
    state.reset()
    accept((LONDON, "After"))
    after = inbox.numbers(None, 10)
    assert before["epoch"] != after["epoch"]
    assert [row["destination"] for row in after["rows"]] == [LONDON]
    assert inbox.messages_to(ANNA, None, 10)["rows"] == []
    assert [row["content"] for row in inbox.search("e", None, 10)["rows"]] == ["After"]


def test_the_marks_of_different_moments_differ(accept, state):
    """Whatever happens to the sandbox makes its mark another, and only that."""
    steps = [
        lambda: accept((ANNA, "Hello")),
        lambda: state.set_balance(5),
        lambda: state.set_post_paid(True),
        lambda: state.set_faults([{"kind": "none", "times": 2}]),
        lambda: state.faults.take("send"),
        lambda: state.faults.take("send"),
        lambda: state.set_faults([{"kind": "none", "persistent": True}]),
        state.reset,
    ]
    marks = [state.mark()]
    for step in steps:
        step()
        marks.append(state.mark())
        assert marks[-1] == state.mark()
    assert not [pair for pair in itertools.pairwise(marks) if pair[0] == pair[1]]


def test_a_fault_that_stays_does_not_change_the_mark(state):
    """A persistent fault is the same before and after it met a request."""
    state.set_faults([{"kind": "none", "persistent": True}])
    before = state.mark()
    state.faults.take("send")
    assert before == state.mark()
