from __future__ import annotations

import pytest

from airflow_provider_sms.sandbox import inbox as module
from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.inbox import Inbox
from airflow_provider_sms.sandbox.request_bodies import SendRequest
from airflow_provider_sms.sandbox.state import SandboxState

ANNA, BEN, LONDON = "27820000001", "27600000002", "447700900123"


@pytest.fixture
def state():
    return SandboxState(SandboxConfig(balance=1_000_000))


@pytest.fixture
def inbox(state):
    return Inbox(state)


@pytest.fixture
def accept(state):
    """Accept messages as one request, and return its event id."""

    def accept_all(*messages):
        return state.accept(SendRequest("bulk", tuple(messages)), state.next_request_number()).event_id

    return accept_all


def walk(page_from):
    """Return the rows of all pages, in order."""
    before, rows = None, []
    while True:
        page = page_from(before)
        rows += page["rows"]
        before = page["next"]
        if before is None:
            return rows


def test_requests_come_newest_first_page_by_page(client):
    """Consecutive pages hold every request once, each with its accepted messages, parts and cost."""
    for number in range(7):
        client.bulk((ANNA, f"Text {number}"), (BEN, f"Text {number}"))
    inbox = Inbox(client.sandbox.state)
    rows = walk(lambda before: inbox.requests(before, 3))
    assert [row["number"] for row in rows] == [7, 6, 5, 4, 3, 2, 1]
    assert {(row["accepted"], row["parts"], row["cost"]) for row in rows} == {(2, 2, 1.35)}
    assert inbox.requests(None, 3)["total"] == 7


def test_older_pages_stand_still_while_requests_arrive(client):
    """A request that arrives meanwhile moves no row from one page to another."""
    for number in range(4):
        client.bulk((ANNA, f"Text {number}"))
    inbox = Inbox(client.sandbox.state)
    before = inbox.requests(None, 2)["next"]
    client.bulk((ANNA, "Later"))
    assert [row["number"] for row in inbox.requests(before, 2)["rows"]] == [2, 1]


def test_a_request_has_its_own_messages_only(inbox, accept):
    """The messages of a request come in request order, from ``offset``; an unknown request has none."""
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
    """A number moves to the top when a message arrives for it, with the beginning of the text."""
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
    """Pages of any size hold every number exactly once between them."""
    numbers = [f"2782{place:07}" for place in range(7)]
    accept(*((number, "Hello") for number in numbers))
    rows = walk(lambda before: inbox.numbers(before, size))
    assert [row["destination"] for row in rows] == numbers[::-1]


def test_the_texts_of_a_number_come_newest_first(inbox, accept):
    """The pages of a number hold all of its texts and no others; an unknown number has none."""
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
    """A search ignores case, separators and leading zeros of numbers; the newest message comes first."""
    accept((ANNA, "Hello"))
    accept((ANNA, "HELLO again"), (LONDON, "STRASSE 5"))
    assert [row["content"] for row in inbox.search(query, None, 10)["rows"]] == found


def test_messages_are_found_by_event_id(inbox, accept):
    """A whole event id finds the messages of its request; its first digits find nothing."""
    accept((ANNA, "Other"))
    event_id = accept((ANNA, "One"), (BEN, "Two"))
    rows = inbox.search(str(event_id), None, 10)["rows"]
    assert [(row["content"], row["event_id"]) for row in rows] == [("Two", str(event_id)), ("One", str(event_id))]
    assert inbox.search(str(event_id)[:-1], None, 10)["rows"] == []


def test_a_search_continues_where_it_stopped(inbox, accept):
    """Consecutive pages of a search hold every match once."""
    accept(*((ANNA, f"Text {number}") for number in range(9)))
    rows = walk(lambda before: inbox.search("text", before, 4))
    assert [row["content"] for row in rows] == [f"Text {number}" for number in range(8, -1, -1)]


def test_one_search_looks_at_a_bounded_number_of_messages(inbox, accept):
    """One call examines a limited number of messages, and returns where the next call begins."""
    accept((ANNA, "needle"))
    per_request = 100
    for _ in range(module.MAX_SEARCHED // per_request):
        accept(*((ANNA, f"hay {number}") for number in range(per_request)))
    first = inbox.search("needle", None, 10)
    assert (first["rows"], first["next"]) == ([], 1)
    second = inbox.search("needle", first["next"], 10)
    assert ([row["content"] for row in second["rows"]], second["next"]) == (["needle"], None)


def test_one_update_indexes_everything_that_arrived(inbox, accept):
    """One read indexes all new messages, even more than are copied from the memory at a time."""
    total = module.UPDATE_SIZE + 200
    for first in range(0, total, 100):
        accept(*((f"2782{first + place:07}", "Hello") for place in range(100)))
    page = inbox.numbers(None, 1)
    assert (page["total"], page["rows"][0]["destination"]) == (total, f"2782{total - 1:07}")


def test_a_reset_empties_the_inbox(inbox, accept, state):
    """A reset begins a new epoch, without the records of the last one."""
    accept((ANNA, "Before"), (BEN, "Before"))
    before = inbox.numbers(None, 10)
    state.reset()
    accept((LONDON, "After"))
    after = inbox.numbers(None, 10)
    assert before["epoch"] != after["epoch"]
    assert [row["destination"] for row in after["rows"]] == [LONDON]
    assert inbox.messages_to(ANNA, None, 10)["rows"] == []
    assert [row["content"] for row in inbox.search("e", None, 10)["rows"]] == ["After"]


def test_the_row_of_a_message_has_every_detail(client):
    """The row has text, parts, encoding, price and network; its event id is a string, as a browser rounds numbers."""
    answer = client.bulk((ANNA, "Zoë " * 20)).json()
    (row,) = client.call("GET", f"/numbers/{ANNA}", base="/_sandbox", headers={}).json()["rows"]
    at = row.pop("at")
    assert at.endswith("+00:00")
    assert row == {
        "key": 0,
        "destination": ANNA,
        "content": "Zoë " * 20,
        "characters": 80,
        "encoding": "UCS-2",
        "parts": 2,
        "cost": 2,
        "network": "Local",
        "event_id": str(answer["EventId"]),
        "request": 1,
    }


def test_the_row_of_a_request_describes_its_response(client):
    """The row has operation, status, counts, price and the event id as a string."""
    answer = client.bulk((ANNA, "One"), ("27991234567", "Nobody")).json()
    (row,) = client.call("GET", "/requests", base="/_sandbox", headers={}).json()["rows"]
    del row["at"]
    assert row == {
        "key": 1,
        "number": 1,
        "operation": "bulk",
        "path": "/v1/bulkmessages",
        "status": 200,
        "error": None,
        "fault": "none",
        "advice": None,
        "submitted": 2,
        "accepted": 1,
        "test_mode": False,
        "event_id": str(answer["EventId"]),
        "parts": 1,
        "cost": 1,
    }


def test_the_row_of_a_request_that_met_a_fault_has_the_advice(client):
    """The advice is for the fault as the request met it: by operation, status, author and acceptance."""
    client.control("POST", "/faults", json=[{"kind": "status", "status": 503}, {"kind": "status", "status": 500}])
    for _ in range(2):
        client.bulk((ANNA, "Hello"))
    client.control("POST", "/faults", json=[{"kind": "status", "status": 500, "on": "balance"}])
    client.balance()
    client.control("POST", "/faults", json=[{"kind": "status", "status": 503, "by": "gateway"}])
    client.bulk((ANNA, "Hello"))
    told = [row["advice"] for row in client.control("GET", "/requests").json()["rows"]]
    assert "as unknown" in told[0]
    assert "read the balance again" in told[1]
    assert "as unknown" in told[2]
    assert "send the same request again" in told[3]


def test_a_long_text_is_truncated(client):
    """The row of a long text has its beginning and its length."""
    client.bulk((ANNA, "x" * (module.MAX_CHARACTERS + 5)))
    (row,) = client.control("GET", f"/numbers/{ANNA}").json()["rows"]
    assert (len(row["content"]), row["characters"]) == (module.MAX_CHARACTERS, module.MAX_CHARACTERS + 5)
    (person,) = client.control("GET", "/numbers").json()["rows"]
    assert len(person["latest"]) == module.PREVIEW_CHARACTERS
