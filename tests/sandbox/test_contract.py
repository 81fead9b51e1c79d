from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import orjson
import pytest

LOCAL, ACACIA, BAOBAB, ABROAD, NOWHERE = "27821234567", "27601234567", "27711234567", "447700900123", "27991234567"
GOOD = {"Destination": LOCAL, "Content": "Hello"}
REQUIRED, TYPE, FORMAT = "RequiredParameter.Missing", "InvalidParameter.Type", "InvalidParameter.Format"
OPERATIONS = {"bulk": [(LOCAL, "Hello")], "group": ["Hello", "staff"], "balance": []}


def errors_of(response):
    body = response.json()
    assert {"statusCode", "errors"} == body.keys()
    assert response.status_code == body["statusCode"]
    return [(error["errorCode"], error["errorMessage"]) for error in body["errors"]]


@pytest.mark.parametrize("base", ["/v1", "/api/v1"])
def test_both_base_paths_serve_every_operation(client, base):
    """The contract shows two base paths, so both serve every operation."""
    statuses = [getattr(client, name)(*arguments, base=base).status_code for name, arguments in OPERATIONS.items()]
    assert [*statuses, client.call("GET", "/Authentication", base=base).status_code] == [200, 200, 200, 401]


def test_a_send_response_has_the_fields_of_the_contract(client):
    """Cost and breakdown are exact sums of parts times the network's price; the quantity counts messages."""
    long = "a" * 161
    body = client.bulk((LOCAL, long), (LOCAL, "b"), (ACACIA, "c"), (BAOBAB, "d"), (ABROAD, long)).json()
    event_id = body.pop("EventId")
    assert isinstance(event_id, int)
    assert body == {
        "Cost": 8.95,
        "RemainingBalance": 991.05,
        "Sample": long,
        "Messages": 5,
        "Parts": 7,
        "CostBreakDown": [
            {"Network": "Local", "Cost": 3, "Quantity": 2},
            {"Network": "Acacia", "Cost": 0.35, "Quantity": 1},
            {"Network": "Baobab", "Cost": 0.8, "Quantity": 1},
            {"Network": "International", "Cost": 4.8, "Quantity": 1},
        ],
        "ErrorReport": {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": []},
    }


def test_event_ids_increase_also_after_a_restart_and_are_lost_by_readers_that_round(start):
    """Event ids lie between 2**53 and 2**63, and change when converted to a float."""
    ids = [client.bulk((LOCAL, "Hello")).json()["EventId"] for client in (start(), start()) for _ in range(3)]
    assert sorted(set(ids)) == ids
    assert all(9007199254740993 < event_id < 2**63 and int(float(event_id)) != event_id for event_id in ids)


def test_what_is_not_sent_is_counted_under_its_first_reason(start):
    """Repetitions in a request, numbers that opted out, and those from 2799 are neither accepted nor charged."""
    client = start(opted_out=[BAOBAB])
    messages = [(NOWHERE, "First"), (LOCAL, "Hello"), (LOCAL, "Hello"), (LOCAL, "Other"), (BAOBAB, "Hello")]
    body = client.bulk(*messages, (BAOBAB, "Hello")).json()
    assert body["ErrorReport"] == {"NoNetwork": 1, "Duplicates": 2, "OptedOuts": 1, "Faults": []}
    assert (body["Messages"], body["Cost"], body["Sample"]) == (2, 2, "Hello")
    assert client.bulk((NOWHERE, "First")).json()["Sample"] == ""
    assert client.bulk((LOCAL, "Hello")).json()["Messages"] == 1
    assert client.sandbox.state.accepted_messages == [(LOCAL, "Hello"), (LOCAL, "Other"), (LOCAL, "Hello")]


def test_test_mode_responds_and_does_nothing(start, tmp_path):
    """In test mode the response is a normal one, but nothing is sent, charged or witnessed."""
    log = tmp_path / "witness.jsonl"
    client = start(log=log, balance=0)
    body = client.bulk((LOCAL, "Hello"), options={"TestMode": True}).json()
    assert (body["Messages"], body["Parts"], body["Cost"], body["RemainingBalance"]) == (1, 1, 1, 0)
    assert (log.read_bytes(), client.sandbox.state.accepted) == (b"", [])


def test_what_the_contract_allows_is_accepted(client, state, headers):
    """100 messages; numbers of 7 to 15 digits; customer ids; any send options; parameters of media types."""
    options = {"SenderId": "Acme", "CampaignName": "Spring", "CheckOptOuts": False, "Anything": [1, 2]}
    messages = [{**GOOD, "Content": f"text {number}", "CustomerId": "x" * 100} for number in range(98)]
    messages += [{**GOOD, "Destination": "4" * length} for length in (7, 15)]
    headers.update({"Content-Type": "application/json; charset=utf-8", "Accept": "text/html, application/json;q=0.9"})
    body = {"Messages": messages, "SendOptions": options}
    assert client.call("POST", "/bulkmessages", json=body, headers=headers).json()["Messages"] == 100
    assert state.requests[-1].send_options == options


def among(message):
    """Return a request with a message between one that is right and one that is not."""
    return {"Messages": [GOOD, message, {**GOOD, "Content": ""}]}


NO_NUMBERS = ["+27821234567", "27 82 123 4567", "27821234567\n", "0821234567", "278212", "2782123456789012"]
NO_NUMBERS += ["27\u0668\u0662\u0661\u0662\u0663\u0664"]
MALFORMED = {
    (FORMAT, "the body is not JSON"): [
        b"{",
        b'{"Messages": NaN}',
        b'{"Messages": [{"Destination": "27821234567", "Content": "\\ud800"}]}',
    ],
    (FORMAT, "the body"): [{"Messages": [GOOD], "Extra": 1}],
    (TYPE, "the body"): [[]],
    (REQUIRED, "Messages"): [{}, {"messages": [GOOD]}],
    (FORMAT, "Messages"): [{"Messages": []}, {"Messages": [GOOD] * 101}],
    (TYPE, "Messages[1]:"): [among("Hello")],
    (FORMAT, "Messages[1]:"): [among({**GOOD, "Extra": "x"})],
    (REQUIRED, "Messages[1].Content"): [among({"Destination": LOCAL})],
    (REQUIRED, "Messages[1].Destination"): [among({"Content": "Hello"})],
    (FORMAT, "Messages[1].Content"): [among({**GOOD, "Content": ""})],
    (TYPE, "Messages[1].Content"): [among({**GOOD, "Content": None})],
    (TYPE, "Messages[1].Destination"): [among({**GOOD, "Destination": 27821234567})],
    (FORMAT, "Messages[1].Destination"): [among({**GOOD, "Destination": number}) for number in NO_NUMBERS],
    (FORMAT, "Messages[1].CustomerId"): [among({**GOOD, "CustomerId": "x" * 101})],
    (TYPE, "SendOptions"): [{"Messages": [GOOD], "SendOptions": None}],
    (FORMAT, "SendOptions.SenderId"): [{"Messages": [GOOD], "SendOptions": {"SenderId": "123456789012"}}],
    (REQUIRED, "Groups"): [{"Message": "Hello"}],
    ("EntityNotFound.Group", "Groups[1]"): [{"Message": "Hello", "Groups": ["staff", "nobody"]}],
}


@pytest.mark.parametrize(("code", "where"), MALFORMED)
def test_a_malformed_request_is_refused_as_a_whole(client, state, code, where):
    """Its error names the field, and each malformed message by its index, without number and text."""
    for body in MALFORMED[code, where]:
        path = "/groupmessages" if {"Message", "Groups"} & {*body} else "/bulkmessages"
        response = client.call("POST", path, data=body if isinstance(body, bytes) else orjson.dumps(body))
        (given, message), *others = errors_of(response)
        assert (response.status_code, given, state.accepted, state.balance) == (400, code, [], 1000)
        assert message.startswith(where)
        if where.startswith("Messages[1]"):
            assert [other.partition(":")[0] for _, other in others] == ["Messages[2].Content"]
        assert "2782" not in response.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/balance", 404), ("GET", "/Balance/", 404), ("POST", "/Balance", 405), ("GET", "/bulkmessages", 405)],
)
def test_other_paths_and_methods_are_not_found(client, method, path, status):
    """Operations exist under their exact path and method only: Balance has a capital B."""
    response = client.call(method, path, allow_redirects=False)
    assert (status, status) == (response.status_code, response.json()["statusCode"])


WRONG_TOKENS = [None, "Bearer", "Bearer wrong", "Bearer token-of-these-test", "Basic token-of-these-tests"]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("name", "wrong", "status", "code"),
    [
        ("Accept", "*/*", 400, FORMAT),
        ("Content-Type", "text/html", 400, FORMAT),
        *(("Authorization", wrong, 401, "AuthenticationToken.Invalid") for wrong in WRONG_TOKENS),
    ],
)
def test_every_operation_needs_its_headers(client, state, headers, operation, name, wrong, status, code):
    """JSON must be declared, of a body where there is one, and the bearer token sent; else nothing is done."""
    headers[name] = wrong
    response = getattr(client, operation)(*OPERATIONS[operation], headers=headers)
    if (operation, name) == ("balance", "Content-Type"):
        assert response.status_code == 200
        return
    ((given, words),) = errors_of(response)
    assert (response.status_code, given, state.accepted) == (status, code, [])
    assert status == 401 or words == f"the header {name}: application/json is missing"
    malformed = client.call("POST", "/bulkmessages", headers=headers, data=b"{")
    assert (malformed.status_code, errors_of(malformed)[0][0]) == (status, code)


def test_client_credentials_fetch_a_token(start, headers):
    """HTTP Basic fetches a new token; the fixed token, where there is one, works beside it."""
    client = start(client_id="me", client_secret="pass:word")
    bodies = [client.call("GET", "/Authentication", headers={}, auth=("me", "pass:word")).json() for _ in range(2)]
    assert [(body["schema"], body["expiresInMinutes"]) for body in bodies] == [("JWT", 1440)] * 2
    assert bodies[0]["token"] != bodies[1]["token"]
    headers["Authorization"] = f"Bearer {bodies[0]['token']}"
    assert (client.balance(headers=headers).status_code, client.balance().status_code) == (200, 200)


@pytest.mark.parametrize("client_id", [None, "me"])
@pytest.mark.parametrize("auth", [None, ("me", "wrong"), ("you", "secret"), ("None", "None"), ("", "")])
def test_wrong_credentials_fetch_nothing(start, client_id, auth):
    """Wrong or missing credentials get 401, and so do any where the sandbox has none."""
    client = start(client_id=client_id, client_secret=client_id and "secret")
    response = client.call("GET", "/Authentication", headers={}, auth=auth)
    assert (response.status_code, errors_of(response)[0][0]) == (401, "InvalidCredentials")


# The account


def test_a_balance_that_does_not_suffice_refuses_the_whole_request(start):
    """Credit for one of two messages gets 403: neither is accepted. A balance may be spent to the last credit."""
    client = start(balance=1)
    response = client.bulk((LOCAL, "One"), (LOCAL, "Two"))
    assert (response.status_code, response.json()["errors"][0]["errorCode"]) == (403, "InsufficientCredits")
    assert (client.sandbox.state.accepted, client.balance().json()) == ([], {"Balance": 1})
    assert client.bulk((LOCAL, "One")).json()["RemainingBalance"] == 0


def test_a_post_paid_account_always_reports_a_million(start):
    """Nothing is deducted from it, also without credit or by somebody else; then pre-paid resumes."""
    client = start(post_paid=True, balance=0)
    state = client.sandbox.state
    state.set_faults([{"kind": "spend", "amount": 7, "on": "balance"}])
    assert client.bulk((LOCAL, "Hello")).json()["RemainingBalance"] == 1000000
    assert (client.balance().json(), state.balance) == ({"Balance": 1000000}, 1000000)
    state.post_paid = False
    assert state.balance == 0
    # Beyond 64 bits it is stated rounded: no balance keeps a request from a response.
    for balance in (1e20, 1e300):
        state.set_balance(balance)
        assert client.bulk((LOCAL, "Hello")).json()["RemainingBalance"] == balance


def test_the_responses_to_parallel_requests_form_one_chain(start, tmp_path):
    """Each response has the balance right after its own charge, in the order of the event ids; none overspends.

    The witness has whole lines, in the order of the memory.
    """
    log = tmp_path / "witness.jsonl"
    client = start(balance=Decimal("30.05"), log=log)
    numbers = (LOCAL, ACACIA, BAOBAB, ABROAD)

    def send(place):
        return client.bulk(*((numbers[(place + step) % 4], f"text {place}") for step in range(1 + place % 3))).json()

    with ThreadPoolExecutor(8) as pool:
        served = [response for response in pool.map(send, range(40)) if "EventId" in response]
    balance = Decimal("30.05")
    for response in sorted(served, key=lambda response: response["EventId"]):
        balance -= Decimal(str(response["Cost"]))
        assert Decimal(str(response["RemainingBalance"])) == balance >= 0
    assert (client.sandbox.state.balance, len(served) < 40) == (balance, True)
    order = [message.event_id for message in client.sandbox.state.accepted]
    assert order == sorted(order)
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    assert client.sandbox.state.accepted_messages == [(line["destination"], line["content"]) for line in lines]
