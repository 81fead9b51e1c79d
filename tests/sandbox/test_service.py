from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

LOCAL, ACACIA, BAOBAB, ABROAD, NOWHERE = "27821234567", "27601234567", "27711234567", "447700900123", "27991234567"


@pytest.mark.parametrize("base", ["/v1", "/api/v1"])
def test_both_base_paths_serve_every_operation(client, base):
    """The contract shows two base paths, so both serve every operation."""
    statuses = [
        client.bulk((LOCAL, "Hello"), base=base).status_code,
        client.group("Hello", "staff", base=base).status_code,
        client.balance(base=base).status_code,
        client.call("GET", "/Authentication", base=base).status_code,
    ]
    assert statuses == [200, 200, 200, 401]


def test_a_send_response_has_the_fields_of_the_contract(client):
    """A send response has cost, balance, event id, sample, counts, breakdown and error report, and nothing else."""
    body = client.bulk((LOCAL, "Hello"), (ACACIA, "Hi")).json()
    event_id = body.pop("EventId")
    assert isinstance(event_id, int)
    assert body == {
        "Cost": 1.35,
        "RemainingBalance": 998.65,
        "Sample": "Hello",
        "Messages": 2,
        "Parts": 2,
        "CostBreakDown": [
            {"Network": "Local", "Cost": 1, "Quantity": 1},
            {"Network": "Acacia", "Cost": 0.35, "Quantity": 1},
        ],
        "ErrorReport": {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": []},
    }


def test_every_network_has_its_price_per_part_and_its_own_line(client):
    """The cost is parts times the network's price, summed per network; the quantity counts messages."""
    long = "a" * 161
    body = client.bulk((LOCAL, long), (LOCAL, "b"), (BAOBAB, "c"), (ABROAD, long)).json()
    assert body["CostBreakDown"] == [
        {"Network": "Local", "Cost": 3, "Quantity": 2},
        {"Network": "Baobab", "Cost": 0.8, "Quantity": 1},
        {"Network": "International", "Cost": 4.8, "Quantity": 1},
    ]
    assert (body["Cost"], body["Messages"], body["Parts"]) == (8.6, 4, 6)


def test_money_is_exact(client):
    """Thirty texts at 0.35 cost 10.5, not the sum of thirty rounded floats."""
    body = client.bulk(*((ACACIA, f"text {number}") for number in range(30))).json()
    assert (body["Cost"], body["RemainingBalance"]) == (10.5, 989.5)


def test_event_ids_are_unique_increasing_and_lost_by_readers_that_round(client):
    """Event ids lie between 2**53 and 2**63, increase, and change when converted to a float."""
    ids = [client.bulk((LOCAL, "Hello")).json()["EventId"] for _ in range(5)]
    assert sorted(set(ids)) == ids
    assert all(9007199254740993 < event_id < 2**63 and int(float(event_id)) != event_id for event_id in ids)


def test_event_ids_are_not_repeated_after_a_restart(start):
    """A sandbox that is started again issues ids above those of the earlier one."""
    first, second = (start().bulk((LOCAL, "Hello")).json()["EventId"] for _ in range(2))
    assert first < second


def test_a_repeated_message_of_one_request_is_a_duplicate(client, state):
    """A destination and text is accepted once in a request, and again in the next request."""
    body = client.bulk((LOCAL, "Hello"), (LOCAL, "Hello"), (LOCAL, "Other")).json()
    again = client.bulk((LOCAL, "Hello")).json()
    assert (body["Messages"], body["ErrorReport"]["Duplicates"], body["Cost"]) == (2, 1, 2)
    assert (again["Messages"], again["ErrorReport"]["Duplicates"]) == (1, 0)
    assert state.accepted_messages == [(LOCAL, "Hello"), (LOCAL, "Other"), (LOCAL, "Hello")]


def test_someone_who_opted_out_is_left_out(start):
    """A message to an opted-out number is counted, but neither accepted nor charged."""
    client = start(opted_out=[LOCAL])
    body = client.bulk((LOCAL, "Hello"), (BAOBAB, "Hello")).json()
    assert (body["Messages"], body["ErrorReport"]["OptedOuts"], body["Cost"]) == (1, 1, 0.8)
    assert client.sandbox.state.accepted_messages == [(BAOBAB, "Hello")]


def test_a_number_without_network_is_left_out(client, state):
    """A message to a number from 2799, which no network serves, is counted, but neither accepted nor charged."""
    body = client.bulk((NOWHERE, "Hello")).json()
    assert (body["Messages"], body["ErrorReport"]["NoNetwork"], body["Cost"], body["Sample"]) == (0, 1, 0, "")
    assert state.accepted_messages == []


def test_the_sample_is_the_first_accepted_text(client):
    """The sample is the text of the first accepted message, not of the first submitted one."""
    assert client.bulk((NOWHERE, "First"), (LOCAL, "Second")).json()["Sample"] == "Second"


def test_test_mode_responds_and_does_nothing(start, tmp_path):
    """In test mode the response is a normal one, but nothing is sent, charged or witnessed."""
    log = tmp_path / "witness.jsonl"
    client = start(log=log, balance=0)
    body = client.bulk((LOCAL, "Hello"), options={"TestMode": True}).json()
    assert (body["Messages"], body["Parts"], body["Cost"], body["RemainingBalance"]) == (1, 1, 1, 0)
    assert log.read_bytes() == b""
    assert client.sandbox.state.accepted_messages == []


def test_unknown_send_options_are_accepted(client, state):
    """Send options that the sandbox does not know are accepted with the request and remembered."""
    options = {"SenderId": "Acme", "CampaignName": "Spring", "CheckOptOuts": False, "Anything": [1, 2]}
    assert client.bulk((LOCAL, "Hello"), options=options).status_code == 200
    assert options == state.requests[-1].send_options


def test_camel_case_keys_and_wrapping_as_other_clients_report_them(start):
    """Other forms of the service's responses have camelCase keys, or the result inside ``sendResponse``."""
    client = start(key_case="camel", wrapped=True)
    body = client.bulk((LOCAL, "Hello")).json()
    assert {"statusCode", "sendResponse", "errors"} == body.keys()
    assert (body["statusCode"], body["errors"]) == (200, [])
    sent = body["sendResponse"]
    names = "cost remainingBalance eventId sample messages parts costBreakdown errorReport"
    assert set(names.split()) == sent.keys()
    assert sent["costBreakdown"][0] == {"network": "Local", "cost": 1, "quantity": 1}
    assert sent["errorReport"] == {"noNetwork": 0, "duplicates": 0, "optedOuts": 0, "faults": []}
    assert client.balance().json() == {"balance": 999}


def test_a_group_send_reaches_each_member_once(start):
    """Each member of each group gets the text; someone in two groups gets it once."""
    client = start(groups={"one": [LOCAL, BAOBAB], "two": [BAOBAB, ACACIA]})
    body = client.group("Hello", "one", "two").json()
    assert (body["Messages"], body["ErrorReport"]["Duplicates"], body["Sample"]) == (3, 1, "Hello")
    assert client.sandbox.state.accepted_messages == [(LOCAL, "Hello"), (BAOBAB, "Hello"), (ACACIA, "Hello")]


def test_the_default_groups_have_members(client):
    """Without settings there are the groups customers and staff, each with members of its own."""
    assert client.group("Hello", "customers", "staff").json()["Messages"] == 10


def test_a_hundred_messages_fit_one_request(client):
    """The contract allows 100 messages in one request."""
    assert client.bulk(*((LOCAL, f"text {number}") for number in range(100))).json()["Messages"] == 100


def test_sends_wait_at_the_same_time(start):
    """Each send response is late by the latency, and of eight at once none waits for all the others."""
    client = start(latency=0.4)

    def timed(number):
        started = time.monotonic()
        client.bulk((LOCAL, f"text {number}"))
        return time.monotonic() - started

    with ThreadPoolExecutor(8) as pool:
        each = list(pool.map(timed, range(8)))
    assert min(each) >= 0.4
    # One after the other, the last response is this late on any machine.
    assert max(each) < 8 * 0.4


def test_only_sends_wait_for_the_latency(start):
    """The latency applies to sends only: the balance responds at once."""
    client = start(latency=30)
    assert client.balance().status_code == 200


def test_refusals_wait_as_well(start):
    """Every response to a send request is late by the latency, including a refusal."""
    client = start(latency=0.05)
    started = time.monotonic()
    assert client.bulk((LOCAL, "")).status_code == 400
    assert time.monotonic() - started >= 0.05
