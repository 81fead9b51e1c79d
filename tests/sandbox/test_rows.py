from __future__ import annotations

from airflow_provider_sms.sandbox import rows

NUMBER = "27820000001"


def test_a_message_is_shown_with_all_that_is_known_of_it(client):
    """Text, parts, encoding, price and network; the event id is text, since a browser would round it."""
    answer = client.bulk((NUMBER, "Zoë " * 20)).json()
    (row,) = client.call("GET", f"/numbers/{NUMBER}", base="/_sandbox", headers={}).json()["rows"]
    at = row.pop("at")
    assert at.endswith("+00:00")
    assert row == {
        "key": 0,
        "destination": NUMBER,
        "content": "Zoë " * 20,
        "characters": 80,
        "encoding": "UCS-2",
        "parts": 2,
        "cost": 2,
        "network": "Local",
        "event_id": str(answer["EventId"]),
        "request": 1,
    }


def test_a_request_is_shown_with_how_it_was_answered(client):
    """Operation, answer, counts, price and event id, which is text, too."""
    answer = client.bulk((NUMBER, "One"), ("27001234567", "Nobody")).json()
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


def test_a_request_that_met_a_fault_says_what_was_to_be_done(client):
    """The line is that of the fault as it met the request: its operation, its status, and whether it accepted."""
    client.control("POST", "/faults", json=[{"kind": "status", "status": 503}, {"kind": "status", "status": 500}])
    for _ in range(2):
        client.bulk((NUMBER, "Hello"))
    client.control("POST", "/faults", json=[{"kind": "status", "status": 500, "on": "balance"}])
    client.balance()
    client.control("POST", "/faults", json=[{"kind": "status", "status": 503, "by": "gateway"}])
    client.bulk((NUMBER, "Hello"))
    told = [row["advice"] for row in client.control("GET", "/requests").json()["rows"]]
    assert "as unknown" in told[0]
    assert "read the balance again" in told[1]
    assert "as unknown" in told[2]
    assert "send the same request again" in told[3]


def test_a_text_that_fills_the_page_is_cut(client):
    """Of a text of any length the page is given a part, and how long it is."""
    client.bulk((NUMBER, "x" * (rows.SHOWN_CHARACTERS + 5)))
    (row,) = client.control("GET", f"/numbers/{NUMBER}").json()["rows"]
    assert (len(row["content"]), row["characters"]) == (rows.SHOWN_CHARACTERS, rows.SHOWN_CHARACTERS + 5)
    (person,) = client.control("GET", "/numbers").json()["rows"]
    assert len(person["latest"]) == rows.PREVIEW_CHARACTERS
