from __future__ import annotations

import orjson
import pytest

NUMBER = "27821234567"
GOOD = {"Destination": NUMBER, "Content": "Hello"}
REQUIRED, TYPE, FORMAT = "RequiredParameter.Missing", "InvalidParameter.Type", "InvalidParameter.Format"


def errors_of(answer):
    body = answer.json()
    assert {"statusCode", "errors"} == body.keys()
    assert answer.status_code == body["statusCode"]
    assert all({"errorCode", "errorMessage"} == error.keys() for error in body["errors"])
    return [(error["errorCode"], error["errorMessage"]) for error in body["errors"]]


@pytest.mark.parametrize(
    ("body", "code", "where"),
    [
        (b"{", FORMAT, "not JSON"),
        (b'{"Messages": NaN}', FORMAT, "not JSON"),
        (b'{"Messages": [{"Destination": "27821234567", "Content": "\\ud800"}]}', FORMAT, "not JSON"),
        ([], TYPE, "must be an object"),
        ({}, REQUIRED, "Messages is missing"),
        ({"messages": [GOOD]}, REQUIRED, "Messages is missing"),
        ({"Messages": GOOD}, TYPE, "Messages must be a list"),
        ({"Messages": []}, FORMAT, "1 to 100"),
        ({"Messages": [GOOD] * 101}, FORMAT, "1 to 100"),
        ({"Messages": [GOOD], "Extra": 1}, FORMAT, "unknown keys"),
        ({"Messages": [GOOD], "SendOptions": []}, TYPE, "SendOptions must be an object"),
        ({"Messages": [GOOD], "SendOptions": None}, TYPE, "SendOptions must be an object"),
        ({"Messages": [GOOD], "SendOptions": {"SenderId": "123456789012"}}, FORMAT, "SendOptions.SenderId"),
        ({"Messages": [GOOD], "SendOptions": {"CampaignName": "x" * 101}}, FORMAT, "SendOptions.CampaignName"),
        ({"Messages": [GOOD], "SendOptions": {"CostCentre": "x" * 101}}, FORMAT, "SendOptions.CostCentre"),
        ({"Messages": [GOOD], "SendOptions": {"CostCentre": 7}}, TYPE, "SendOptions.CostCentre"),
        ({"Messages": [GOOD], "SendOptions": {"TestMode": "true"}}, TYPE, "SendOptions.TestMode"),
    ],
)
def test_a_malformed_bulk_request_is_refused(client, state, body, code, where):
    """A body outside the contract gets 400 with an error code of the service and the field's name."""
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    answer = client.call("POST", "/bulkmessages", data=raw)
    ((given_code, message),) = errors_of(answer)
    assert (400, code) == (answer.status_code, given_code)
    assert where in message
    assert state.accepted_messages == []


@pytest.mark.parametrize(
    ("message", "code", "field"),
    [
        ("Hello", TYPE, "Messages[1] must"),
        ({"Destination": NUMBER}, REQUIRED, "Messages[1].Content"),
        ({"Content": "Hello"}, REQUIRED, "Messages[1].Destination"),
        ({**GOOD, "Content": ""}, FORMAT, "Messages[1].Content"),
        ({**GOOD, "Content": None}, TYPE, "Messages[1].Content"),
        ({**GOOD, "Destination": 27821234567}, TYPE, "Messages[1].Destination"),
        ({**GOOD, "Destination": ""}, FORMAT, "Messages[1].Destination"),
        ({**GOOD, "Destination": "+27821234567"}, FORMAT, "Messages[1].Destination"),
        ({**GOOD, "Destination": "27 82 123 4567"}, FORMAT, "Messages[1].Destination"),
        ({**GOOD, "Destination": "27821234567\n"}, FORMAT, "Messages[1].Destination"),
        ({**GOOD, "Destination": "0821234567"}, FORMAT, "Messages[1].Destination"),
        ({**GOOD, "Destination": "278212"}, FORMAT, "Messages[1].Destination"),
        ({**GOOD, "Destination": "2782123456789012"}, FORMAT, "Messages[1].Destination"),
        (
            {**GOOD, "Destination": "27\u0668\u0662\u0661\u0662\u0663\u0664\u0665\u0666\u0667"},
            FORMAT,
            "Messages[1].Destination",
        ),
        ({**GOOD, "CustomerId": "x" * 101}, FORMAT, "Messages[1].CustomerId"),
        ({**GOOD, "CustomerId": 7}, TYPE, "Messages[1].CustomerId"),
        ({**GOOD, "Extra": "x"}, FORMAT, "Messages[1] has unknown keys"),
    ],
)
def test_one_malformed_message_refuses_the_whole_request(client, state, message, code, field):
    """A malformed message gets 400 with its index, but without its number and text; the others are not accepted."""
    answer = client.call("POST", "/bulkmessages", json={"Messages": [GOOD, message]})
    ((given_code, given_message),) = errors_of(answer)
    assert (400, code) == (answer.status_code, given_code)
    assert given_message.startswith(field)
    assert "2782" not in answer.text
    assert state.accepted_messages == []
    assert state.balance == 1000


def test_every_malformed_message_is_named(client):
    """The response to several malformed messages names each of them."""
    bad = {**GOOD, "Content": ""}
    answer = client.call("POST", "/bulkmessages", json={"Messages": [bad, GOOD, bad]})
    assert [message.split(" ")[0] for _, message in errors_of(answer)] == ["Messages[0].Content", "Messages[2].Content"]


@pytest.mark.parametrize("length", [7, 15])
def test_the_shortest_and_longest_numbers_are_accepted(client, length):
    """Numbers of 7 to 15 digits are well-formed (ITU-T E.164)."""
    number = "4" * length
    assert client.bulk((number, "Hello")).json()["Messages"] == 1


def test_a_customer_id_is_allowed(client):
    """A message may carry a customer id of up to 100 characters."""
    answer = client.call("POST", "/bulkmessages", json={"Messages": [{**GOOD, "CustomerId": "x" * 100}]})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("body", "code", "where"),
    [
        ({"Groups": ["staff"]}, REQUIRED, "Message is missing"),
        ({"Message": "Hello"}, REQUIRED, "Groups is missing"),
        ({"Message": 7, "Groups": ["staff"]}, TYPE, "Message must be a string"),
        ({"Message": "", "Groups": ["staff"]}, FORMAT, "Message must not be empty"),
        ({"Message": "Hello", "Groups": "staff"}, TYPE, "Groups must be a list"),
        ({"Message": "Hello", "Groups": [7]}, TYPE, "Groups must be a list of strings"),
        ({"Message": "Hello", "Groups": []}, FORMAT, "at least one"),
        ({"Message": "Hello", "Groups": ["staff", "nobody"]}, "EntityNotFound.Group", "Groups[1]"),
        ({"Message": "Hello", "Groups": ["staff"], "Messages": []}, FORMAT, "unknown keys"),
        ({"Message": "Hello", "Groups": ["staff"], "SendOptions": 7}, TYPE, "SendOptions"),
    ],
)
def test_a_malformed_group_request_is_refused(client, state, body, code, where):
    """A group send needs a text and known groups; otherwise it gets 400, and nothing is accepted."""
    answer = client.call("POST", "/groupmessages", json=body)
    ((given_code, message),) = errors_of(answer)
    assert (400, code) == (answer.status_code, given_code)
    assert where in message
    assert state.accepted_messages == []


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_must_be_declared_as_json(client, headers, content_type):
    """A send request without ``Content-Type: application/json`` gets 400."""
    headers["Content-Type"] = content_type
    answer = client.call("POST", "/bulkmessages", headers=headers, data=orjson.dumps({"Messages": [GOOD]}))
    assert errors_of(answer) == [(FORMAT, "the header Content-Type: application/json is missing")]


@pytest.mark.parametrize("accept", ["*/*", "text/html"])
@pytest.mark.parametrize("operation", ["bulk", "group", "balance"])
def test_a_response_must_be_requested_as_json(client, headers, accept, operation):
    """A request to the service without ``Accept: application/json`` gets 400."""
    headers["Accept"] = accept
    arguments = {"bulk": [(NUMBER, "Hello")], "group": ["Hello", "staff"], "balance": []}[operation]
    answer = getattr(client, operation)(*arguments, headers=headers)
    assert errors_of(answer) == [(FORMAT, "the header Accept: application/json is missing")]


def test_media_types_may_have_parameters(client, headers):
    """Parameters of a media type, such as charset and quality, are ignored (RFC 9110 section 8.3)."""
    headers.update({"Content-Type": "application/json; charset=utf-8", "Accept": "text/html, application/json;q=0.9"})
    assert client.bulk((NUMBER, "Hello"), headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/balance", 404), ("GET", "/Balance/", 404), ("POST", "/Balance", 405), ("GET", "/bulkmessages", 405)],
)
def test_other_paths_and_methods_are_not_found(client, method, path, status):
    """Operations exist under their exact path and method only: Balance has a capital B."""
    answer = client.call(method, path, allow_redirects=False)
    assert (status, status) == (answer.status_code, answer.json()["statusCode"])


def test_nothing_but_the_sandbox_itself_is_served(client):
    """There are no generated documentation pages, which load scripts from other hosts."""
    statuses = [client.call("GET", path, base="").status_code for path in ("/docs", "/redoc", "/openapi.json")]
    assert statuses == [404, 404, 404]
