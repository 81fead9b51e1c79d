import json
from decimal import Decimal

import pytest

from airflow_provider_sms.exceptions import UnknownOutcomeError
from airflow_provider_sms.service.responses import (
    Balance,
    ErrorReport,
    NetworkCost,
    SendResponse,
    parse_balance,
    parse_send_response,
)

REQUIRED = {"Cost": 2, "RemainingBalance": 10, "EventId": 5, "Messages": 2, "Parts": 3}
FAULT = {"rawDestination": "082 123 4567", "scrubbedDestination": "27821234567", "status": "failed"}


def body(**changes):
    fields = {**REQUIRED, **changes}
    return json.dumps({key: value for key, value in fields.items() if value is not ...}).encode()


@pytest.mark.parametrize("case", [str, str.lower, str.upper, lambda key: key[0].lower() + key[1:]])
def test_a_whole_answer_is_read(wire, case):
    """Every field of the contract is read, in whatever case its keys are at every level; raw is what was received."""

    def cased(value):
        if isinstance(value, dict):
            return {case(key): cased(entry) for key, entry in value.items()}
        return [cased(entry) for entry in value] if isinstance(value, list) else value

    received = cased(wire.sent)
    response = parse_send_response(json.dumps(received).encode())
    assert response.raw == received
    assert response == SendResponse(
        cost=Decimal("1.5"),
        remaining_balance=Decimal("998.5"),
        event_id=2**53 + 1,
        sample="Hi Thandi",
        messages=1,
        parts=1,
        cost_breakdown=(NetworkCost("Local", Decimal("1.5"), 1),),
        error_report=ErrorReport(0, 0, 0, (), {}),
        body=json.dumps(received).encode(),
    )


@pytest.mark.parametrize("status", [200, 200.0, "200", None])
def test_the_wrapped_form_is_unwrapped(wire, status):
    """The newer form reads as the plain one, and may repeat its status, as a number or as text."""
    wrapped = {"statusCode": status, "sendResponse": wire.sent, "errors": []}
    response = parse_send_response(json.dumps(wrapped).encode())
    assert (response.event_id, response.raw) == (2**53 + 1, wrapped)
    assert parse_balance(json.dumps({"StatusCode": status, "Balance": 7}).encode(), "auto").amount == 7


@pytest.mark.parametrize("status", [403, 500, 504, "500", True, {}])
def test_a_response_that_names_another_status_is_unknown(wire, status):
    """An error within a 200 proves neither that messages were taken nor that they were not, whatever it counts."""
    for sent in (wire.sent, {**wire.sent, "Messages": 0, "Parts": 0, "Cost": 0}):
        for form in ({"statusCode": status, "sendResponse": sent, "errors": []}, {"statusCode": status, **sent}):
            with pytest.raises(UnknownOutcomeError, match="its statusCode is not"):
                parse_send_response(json.dumps(form).encode())
    with pytest.raises(UnknownOutcomeError, match="its statusCode is not"):
        parse_balance(json.dumps({"StatusCode": status, "Balance": 7}).encode(), "auto")


@pytest.mark.parametrize(
    "digits",
    ["100.0", "12.50", "0.1", "0.10", "1e2", "1E+2", "-0.0", "7", "1000000.00", "1e-7", "1234567890.12345678901"],
)
@pytest.mark.parametrize("other", ["1", "2.5", "2.50"])
def test_an_amount_keeps_its_digits(digits, other):
    """Every amount has the digits received, its trailing zeros too, whatever stands beside it; raw has numbers."""
    text = f'{{"Cost": {digits}, "RemainingBalance": {other}, "EventId": 1, "Messages": 1, "Parts": 1}}'
    response = parse_send_response(text.encode())
    assert (str(Decimal(digits)), str(Decimal(other))) == (str(response.cost), str(response.remaining_balance))
    assert (type(response.cost), type(response.remaining_balance)) == (Decimal, Decimal)
    assert repr(json.loads(text)) == repr(response.raw)


@pytest.mark.parametrize("digits", ["1e-101", "1e-800000000", "-1e-800000000", "0e-800000000", "0e800000000"])
def test_an_amount_has_a_hundred_decimals_at_most(digits):
    """A few bytes could stand for an amount that takes gigabytes to write."""
    for name in ("Cost", "RemainingBalance"):
        text = body().replace(f'"{name}": {REQUIRED[name]}'.encode(), f'"{name}": {digits}'.encode())
        with pytest.raises(UnknownOutcomeError, match=f"(?i)the contract: {name}: .*not an amount"):
            parse_send_response(text)
    with pytest.raises(UnknownOutcomeError, match="the contract: balance is missing or not an amount"):
        parse_balance(f'{{"Balance": {digits}}}'.encode(), "auto")
    assert parse_balance(b'{"Balance": 1e-100}', "auto").amount == Decimal("1e-100")


@pytest.mark.parametrize("event_id", [2**63 - 1, "9007199254740993", -(2**63), "-9223372036854775808"])
def test_raw_can_be_made_json_of_again(event_id):
    """It holds plain numbers and unknown keys; the event id is exact above 2**53, also as digits for JavaScript."""
    changes = {"EventId": event_id, "Cost": 0.5, "Novelty": [1.25, None]}
    response = parse_send_response(body(**changes))
    assert response.event_id == int(event_id)
    assert json.loads(json.dumps(response.raw)) == {**REQUIRED, **changes}


@pytest.mark.parametrize("name", ["Sample", "CostBreakDown", "ErrorReport"])
@pytest.mark.parametrize("value", [None, ...])
def test_what_may_be_missing_may_be_null(name, value):
    """Fields that only inform are empty then, and an entry without a number counts nothing."""
    response = parse_send_response(body(**{name: value}))
    assert (response.sample, response.cost_breakdown, response.error_report) == ("", (), ErrorReport())
    (entry,) = parse_send_response(body(CostBreakDown=[{"Cost": None}])).cost_breakdown
    assert entry == NetworkCost("", Decimal(0), 0)


def test_the_error_report_is_read():
    """Counters of the contract are named, further ones stand in other under the name received."""
    report = {"noNetwork": 1, "Duplicates": 2, "OptedOuts": None, "ContentToLong": 3, "Ratio": 0.5, "On": True}
    response = parse_send_response(body(ErrorReport={**report, "Faults": [FAULT, "odd", {"ErrorMessage": "no route"}]}))
    expected = ErrorReport(1, 2, 0, ("", "odd", "no route"), {"ContentToLong": 3})
    assert expected == response.error_report


@pytest.mark.parametrize("value", [-1, 1_000_000, 27821234567, int("9" * 4300)], ids=lambda value: str(value)[:12])
def test_a_counter_that_cannot_be_one_counts_nothing(value):
    """It may be a phone number, and the sum of two may have more digits than Python writes."""
    named = {"OptedOuts": value} if 0 <= value < 2**63 else {}
    response = parse_send_response(body(ErrorReport={"FirstFailed": value, "NoContents": 999_999, **named}))
    assert response.error_report == ErrorReport(other={"NoContents": 999_999})


def test_the_repr_shows_nothing_personal():
    """Neither sample nor faults nor raw are in the repr."""
    shown = repr(parse_send_response(body(Sample="Hi Thandi", ErrorReport={"Faults": [FAULT]})))
    assert not [word for word in ("Thandi", "27821234567", "4567") if word in shown]


def test_integers_may_be_written_as_floats():
    """Every integer of a response is read where a serialiser that knows only doubles writes it as ``2.0``."""
    report = {"NoNetwork": 1.0, "Duplicates": 2.0, "OptedOuts": 3.0, "NoContents": 4.0}
    network = {"Network": "Local", "Cost": 2.0, "Quantity": 2.0}
    send = {"EventId": 2.0**53 - 1, "Messages": 2.0, "Parts": 3.0, "CostBreakDown": [network], "ErrorReport": report}
    response = parse_send_response(body(**send))
    integers = (response.event_id, response.messages, response.parts, response.cost_breakdown[0].quantity)
    assert repr(integers) == "(9007199254740991, 2, 3, 2)"
    assert repr(response.error_report) == repr(ErrorReport(1, 2, 3, (), {"NoContents": 4}))


@pytest.mark.parametrize(
    ("digits", "value"),
    [
        *((form, 2) for form in ("2.00", "2e0", "0.2E1", "2.00000000000000000000")),
        *((form, None) for form in ("9007199254740992.0", "9007199254740993.0", "2.00000000000000000001")),
        ("1e-800000000", None),
    ],
)
def test_an_integer_may_have_any_form_of_its_value(digits, value):
    """JSON does not tell forms apart; from 2^53 on a double is several integers, and one with a fraction is none."""
    text = f'{{"Cost": 0.10, "RemainingBalance": 1, "EventId": {digits}, "Messages": 2e0, "Parts": 2.0}}'.encode()
    if value is None:
        with pytest.raises(UnknownOutcomeError, match="the contract: eventid: "):
            parse_send_response(text)
    else:
        response = parse_send_response(text)
        assert repr((response.event_id, response.messages, response.parts)) == "(2, 2, 2)"


@pytest.mark.parametrize("name", sorted(REQUIRED))
@pytest.mark.parametrize("value", [..., None, True, "x", [], {}])
def test_a_required_field_is_required(name, value):
    """A field that is missing or of another type makes the answer none, and the error names the field."""
    with pytest.raises(UnknownOutcomeError, match=f"(?i)the response does not meet the contract: {name}: "):
        parse_send_response(body(**{name: value}))


WRONG = {
    "EventId": [5.5, 2.0**53, 2**63, "12x", "²", "9" * 5000],
    "Messages": [-1, 1.5],
    "messages": [0],  # beside the one in capitals: of two values of one field nobody can say which holds
    "Parts": [-1, "3", 1e30, 2**63],
    "Cost": ["2", 10**40],
    "Sample": [1],
    "CostBreakDown": [{}, ["Local"], [{"Cost": "1"}], [{"Quantity": -1}]],
    "ErrorReport": [[], {"NoNetwork": "1"}, {"Duplicates": -1}, {"Faults": {}}],
    "sendResponse": [[], "sent"],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_not_of_the_contract(name):
    """A value outside its type or range makes the answer none."""
    for value in WRONG[name]:
        with pytest.raises(UnknownOutcomeError, match="the response does not meet the contract"):
            parse_send_response(body(**{name: value}))


NO_NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1e99999999999999999999"]
NO_OBJECTS = [b"", b"null", b"[]", b'"sent"', b"7", b"<html>", b"\xff\xfe\xff", b'{"Sample": "Hi Thandi 27821234567"']
NO_OBJECTS += [b"[" * 200_000, b'{"a":' * 200_000, b'{"EventId": ' + b"9" * 5000 + b"}"]
NO_OBJECTS += [body().replace(b'"Cost": 2', b'"Cost": ' + number) for number in NO_NUMBERS]
NO_OBJECTS += [body().replace(b"{", b'{"Other": NaN, ')]


@pytest.mark.parametrize("text", NO_OBJECTS, ids=range(len(NO_OBJECTS)))
def test_what_is_no_json_object_is_no_answer(text):
    """Whatever came in place of an object with finite numbers, the outcome is unknown, and nothing of it is quoted."""
    with pytest.raises(UnknownOutcomeError, match="the response does not meet the contract") as caught:
        parse_send_response(text)
    assert (caught.value.status, "Thandi" in str(caught.value)) == (200, False)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    with pytest.raises(UnknownOutcomeError):
        parse_balance(text.replace(b"Cost", b"Balance").replace(b"Other", b"Balance"), "auto")


@pytest.mark.parametrize(
    ("text", "billing", "expected"),
    [
        ('{"Balance": 12.50}', "auto", Balance(Decimal("12.50"), post_paid=False)),
        ('{"balance": 1000000}', "auto", Balance(Decimal(1000000), post_paid=True)),
        ('{"BALANCE": 1000000.00}', "auto", Balance(Decimal("1000000.00"), post_paid=True)),
        ('{"Balance": 1000000.01}', "auto", Balance(Decimal("1000000.01"), post_paid=False)),
        ('{"Balance": 1000000}', "prepaid", Balance(Decimal(1000000), post_paid=False)),
        ('{"Balance": -3, "Other": 1}', "postpaid", Balance(Decimal(-3), post_paid=True)),
        *((f"{{{none}}}", "auto", None) for none in ("", '"Balance": "1"', '"Balance": null', '"Balance": true')),
    ],
)
def test_a_balance_is_read(text, billing, expected):
    """It is an exact number; exactly 1000000 means post-paid, unless the kind of account is stated."""
    if expected is None:
        with pytest.raises(UnknownOutcomeError, match="the response does not meet the contract"):
            parse_balance(text.encode(), billing)
    else:
        assert parse_balance(text.encode(), billing) == expected
