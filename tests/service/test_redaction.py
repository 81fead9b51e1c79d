from __future__ import annotations

import json

import pytest

from airflow_provider_sms.service.redaction import redacted_response

FAULT = {"rawDestination": "082 123 4567", "scrubbedDestination": 27821234567, "status": "no route to 27821234567"}
MASKED = {"rawDestination": "0821*****67", "scrubbedDestination": "2782*****67", "status": "no route to 2782*****67"}
BODY = {"Cost": 1.5, "EventId": 2**70, "Sample": "Dear Ann", "Extra": "27821234567", "ErrorReport": {"Faults": [FAULT]}}


def lowered(value):
    """The same document with keys in lower case."""
    if isinstance(value, dict):
        return {key[0].lower() + key[1:]: lowered(item) for key, item in value.items()}
    return [lowered(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", [lambda body: body, lowered], ids=["pascal", "camel"])
@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "wrapped"])
def test_a_sample_is_left_out_and_the_numbers_of_faults_are_masked(case, wrapped):
    """In either case of keys and either form, and those of errors; other fields stay as they came, in their order."""
    left = {"Cost": 1.5, "EventId": 2**70, "Extra": "27821234567", "ErrorReport": {"Faults": [MASKED]}}
    body, left = case(BODY), case(left)
    if wrapped:
        errors = [{"errorMessage": "27821234567 has opted out"}]
        body = {"statusCode": 200, "sendResponse": body, "errors": errors}
        left = {"statusCode": 200, "sendResponse": left, "errors": [{"errorMessage": "2782*****67 has opted out"}]}
    assert json.dumps(redacted_response(body)) == json.dumps(left)
    assert redacted_response(left) == left


@pytest.mark.parametrize(
    ("fault", "masked"),
    [
        ("27821234567 is blocked", "2782*****67 is blocked"),
        ({"to": [27821234567, 27821234567.0, True, None, 12]}, {"to": ["2782*****67", "2782*****70", True, None, 12]}),
        ({"27821234567": {"why": "blocked"}}, {"2782*****67": {"why": "blocked"}}),
    ],
    ids=str,
)
def test_a_fault_of_any_shape_names_no_number(fault, masked):
    """Its shape is not specified: numbers are masked in texts, in keys and as numbers, and the rest stays."""
    assert redacted_response({"ErrorReport": {"Faults": [fault]}}) == {"ErrorReport": {"Faults": [masked]}}


@pytest.mark.parametrize("where", [lambda words: {"ErrorReport": {"Faults": words}}, lambda words: {"errors": words}])
def test_a_text_that_a_fault_repeats_is_blanked(where):
    """The reason stays, and the text of a person does not; a number beside it is masked as well."""
    words = ["Content 'Dear Ann, your account is overdue' for 27821234567 holds signs", {"why": "no route to it"}]
    left = ["Content '***' for 2782*****67 holds signs", {"why": "no route to it"}]
    texts = ["Dear Bob, your account is overdue", "Dear Ann, your account is overdue"]
    assert redacted_response(where(words), iter(texts)) == where(left)


def test_a_deep_fault_costs_no_record():
    """A response that is nested as deep as JSON can be read is redacted all the same."""
    nested = json.loads("[" * 400 + "27821234567" + "]" * 400)
    assert "2782" not in json.dumps(redacted_response({"errorReport": {"faults": nested}}))


@pytest.mark.parametrize(
    "body",
    [
        {"errorReport": [1], "Faults": 1, "sendResponse": {"Cost": 1, "errorReport": {"Faults": "none"}}},
        {"sendResponse": [1]},
        {"ErrorReport": None},
        {"errorReport": {"Faults": None}},
        {},
    ],
)
def test_fields_of_another_type_cost_no_record(body):
    """A wrapped response may have anything beside the response itself, and fields may be missing or null."""
    assert redacted_response({**body, "Sample": None}) == body
