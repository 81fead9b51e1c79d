import json
import pickle
from decimal import Decimal

import pytest

from airflow_provider_sms.exceptions import UnknownOutcomeError
from airflow_provider_sms.service.responses import (
    Balance,
    ErrorReport,
    NetworkCost,
    parse_balance,
    parse_send_response,
)

REQUIRED = {"Cost": 2, "RemainingBalance": 10, "EventId": 5, "Messages": 2, "Parts": 3}
FAULT = {"rawDestination": "082 123 4567", "scrubbedDestination": "27821234567", "status": "failed"}


def body(**changes):
    fields = {**REQUIRED, **changes}
    return json.dumps({key: value for key, value in fields.items() if value is not ...}).encode()


def test_a_whole_answer_is_read(wire):
    """Every field of the contract is read."""
    response = parse_send_response(json.dumps(wire.sent).encode())
    assert Decimal("1.5") == response.cost
    assert Decimal("998.5") == response.remaining_balance
    assert response.event_id == 2**53 + 1
    assert response.sample == "Hi Thandi"
    assert (response.messages, response.parts) == (1, 1)
    assert response.cost_breakdown == (NetworkCost("Local", Decimal("1.5"), 1),)
    assert response.error_report == ErrorReport(0, 0, 0, (), {})
    assert response.raw == wire.sent


@pytest.mark.parametrize("case", [str.lower, str.upper, lambda key: key[0].lower() + key[1:]])
def test_keys_match_in_any_case_at_every_level(wire, case):
    """The answer reads the same in whatever case its keys are."""

    def cased(value):
        if isinstance(value, dict):
            return {case(key): cased(entry) for key, entry in value.items()}
        return [cased(entry) for entry in value] if isinstance(value, list) else value

    expected = parse_send_response(json.dumps(wire.sent).encode())
    actual = parse_send_response(json.dumps(cased(wire.sent)).encode())
    assert (expected.cost, expected.event_id, expected.cost_breakdown, expected.error_report) == (
        actual.cost,
        actual.event_id,
        actual.cost_breakdown,
        actual.error_report,
    )


def test_unknown_keys_are_ignored_and_kept():
    """A key that is not of the contract changes nothing and stands in raw."""
    response = parse_send_response(body(Novelty=[1.25, None]))
    assert response.raw["Novelty"] == [1.25, None]


def test_the_wrapped_form_is_unwrapped(wire):
    """The newer form reads as the plain one, and raw is what was received."""
    wrapped = {"statusCode": 200, "sendResponse": wire.sent, "errors": []}
    response = parse_send_response(json.dumps(wrapped).encode())
    assert response.event_id == 2**53 + 1
    assert response.raw == wrapped


@pytest.mark.parametrize("status", [403, 500, 504, "500", True, {}])
def test_a_response_that_names_another_status_is_unknown(wire, status):
    """An error within a 200 proves neither that messages were taken nor that they were not, whatever it counts."""
    for sent in (wire.sent, {**wire.sent, "Messages": 0, "Parts": 0, "Cost": 0}):
        for form in ({"statusCode": status, "sendResponse": sent, "errors": []}, {"statusCode": status, **sent}):
            with pytest.raises(UnknownOutcomeError, match="its statusCode is not"):
                parse_send_response(json.dumps(form).encode())
    with pytest.raises(UnknownOutcomeError, match="its statusCode is not"):
        parse_balance(json.dumps({"StatusCode": status, "Balance": 7}).encode(), "auto")


@pytest.mark.parametrize("status", [200, "200", None])
def test_a_response_may_repeat_its_status(wire, status):
    """As a number or as text."""
    wrapped = {"StatusCode": status, "sendResponse": wire.sent}
    assert parse_send_response(json.dumps(wrapped).encode()).event_id == 2**53 + 1
    assert parse_balance(json.dumps({"statusCode": status, "Balance": 7}).encode(), "auto").amount == 7


def test_money_is_exact():
    """Amounts are the decimals of the JSON text, which floats would not be."""
    text = b'{"Cost": 0.1, "RemainingBalance": 1234567890.12345678901, "EventId": 1, "Messages": 1, "Parts": 1}'
    response = parse_send_response(text)
    assert Decimal("0.1") == response.cost
    assert Decimal("1234567890.12345678901") == response.remaining_balance


@pytest.mark.parametrize("digits", ["100.0", "12.50", "0.1", "0.10", "1e2", "1E+2", "-0.0", "7", "1000000.00", "1e-7"])
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
        with pytest.raises(UnknownOutcomeError, match=f"{name} is missing or not an amount"):
            parse_send_response(text)
    with pytest.raises(UnknownOutcomeError, match="Balance is missing or not an amount"):
        parse_balance(f'{{"Balance": {digits}}}'.encode(), "auto")
    assert parse_balance(b'{"Balance": 1e-100}', "auto").amount == Decimal("1e-100")


def test_raw_can_be_made_json_of_again():
    """Raw holds plain numbers, with the event id exact above 2**53."""
    response = parse_send_response(body(EventId=2**63 - 1, Cost=0.5))
    assert response.event_id == 2**63 - 1
    expected = {**REQUIRED, "EventId": 2**63 - 1, "Cost": 0.5}
    assert expected == json.loads(json.dumps(response.raw))


def test_an_event_id_of_digits_only_is_read():
    """A string of digits is an event id, since JavaScript readers need strings."""
    assert parse_send_response(body(EventId="9007199254740993")).event_id == 2**53 + 1


@pytest.mark.parametrize("name", ["Sample", "CostBreakDown", "ErrorReport"])
@pytest.mark.parametrize("value", [None, ...])
def test_what_may_be_missing_may_be_null(name, value):
    """Fields that only inform are empty when they are missing or null."""
    response = parse_send_response(body(**{name: value}))
    assert (response.sample, response.cost_breakdown, response.error_report) == ("", (), ErrorReport())


def test_parts_of_a_breakdown_may_be_missing():
    """A breakdown entry without a number counts nothing: it is no reason to doubt the send."""
    response = parse_send_response(body(CostBreakDown=[{"Cost": None}]))
    assert response.cost_breakdown == (NetworkCost("", Decimal(0), 0),)


def test_the_error_report_is_read():
    """Counters of the contract are named, further ones stand in other under the name received."""
    report = {"noNetwork": 1, "Duplicates": 2, "OptedOuts": None, "ContentToLong": 3, "Ratio": 0.5, "On": True}
    response = parse_send_response(body(ErrorReport={**report, "Faults": [FAULT, "odd"]}))
    expected = ErrorReport(1, 2, 0, (FAULT, {"errorMessage": "odd"}), {"ContentToLong": 3})
    assert expected == response.error_report


@pytest.mark.parametrize("value", [-1, 1_000_000, 27821234567, int("9" * 4300)], ids=lambda value: str(value)[:12])
def test_a_counter_that_cannot_be_one_counts_nothing(value):
    """It may be a phone number, and the sum of two may have more digits than Python writes."""
    named = {"OptedOuts": value} if 0 <= value < 2**63 else {}
    response = parse_send_response(body(ErrorReport={"FirstFailed": value, "NoContents": 999_999, **named}))
    assert response.error_report == ErrorReport(other={"NoContents": 999_999})


def test_the_repr_shows_nothing_personal():
    """Neither sample nor faults nor raw are in the repr."""
    response = parse_send_response(body(Sample="Hi Thandi", ErrorReport={"Faults": [FAULT]}))
    assert "Thandi" not in repr(response)
    assert "27821234567" not in repr(response)
    assert "4567" not in repr(response)


def test_a_response_can_be_pickled():
    """A response survives being handed to another process."""
    response = parse_send_response(body())
    assert response == pickle.loads(pickle.dumps(response))


def test_integers_may_be_written_as_floats():
    """Every integer of a response is read where a serialiser that knows only doubles writes it as ``2.0``."""
    report = {"NoNetwork": 1.0, "Duplicates": 2.0, "OptedOuts": 3.0, "NoContents": 4.0}
    network = {"Network": "Local", "Cost": 2.0, "Quantity": 2.0}
    send = {"EventId": 2.0**53 - 1, "Messages": 2.0, "Parts": 3.0, "CostBreakDown": [network], "ErrorReport": report}
    for form in (body(**send), json.dumps({"statusCode": 200.0, "sendResponse": {**REQUIRED, **send}}).encode()):
        response = parse_send_response(form)
        integers = (response.event_id, response.messages, response.parts, response.cost_breakdown[0].quantity)
        assert repr(integers) == "(9007199254740991, 2, 3, 2)"
        counters = response.error_report
        assert repr((counters.no_network, counters.duplicates, counters.opted_outs)) == "(1, 2, 3)"
        assert repr(counters.other) == "{'NoContents': 4}"


@pytest.mark.parametrize("digits", ["2.00", "2e0", "0.2E1", "2.00000000000000000000"])
def test_an_integer_may_have_any_form_of_its_value(digits):
    """JSON does not tell the forms of a number apart, also beside an amount that only decimals hold exactly."""
    text = f'{{"Cost": 0.10, "RemainingBalance": 1, "EventId": {digits}, "Messages": {digits}, "Parts": {digits}}}'
    response = parse_send_response(text.encode())
    assert repr((response.event_id, response.messages, response.parts)) == "(2, 2, 2)"


@pytest.mark.parametrize(
    "digits", ["9007199254740992.0", "9007199254740993.0", "2.00000000000000000001", "1e-800000000"]
)
def test_a_float_that_may_be_another_integer_is_none(digits):
    """From 2^53 on a double stands for more than one integer, and a number with a fraction for none."""
    text = f'{{"Cost": 1, "RemainingBalance": 1, "EventId": {digits}, "Messages": 1, "Parts": 1}}'
    with pytest.raises(UnknownOutcomeError, match="EventId is missing or not a 64-bit integer"):
        parse_send_response(text.encode())


@pytest.mark.parametrize("name", sorted(REQUIRED))
@pytest.mark.parametrize("value", [..., None, True, "x", [], {}])
def test_a_required_field_is_required(name, value):
    """A field that is missing or of another type makes the answer none, and the error names the field."""
    with pytest.raises(UnknownOutcomeError, match=f"the response does not meet the contract: {name} is missing or not"):
        parse_send_response(body(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EventId", 5.5),
        ("EventId", 2.0**53),
        ("EventId", 2**63),
        ("EventId", "12x"),
        ("EventId", "²"),
        ("EventId", "9" * 5000),
        ("Messages", -1),
        ("Messages", 1.5),
        ("Parts", -1),
        ("Parts", "3"),
        ("Parts", 1e30),
        ("Parts", 2**63),
        ("Cost", "2"),
        ("Cost", 10**40),
        ("Sample", 1),
        ("CostBreakDown", {}),
        ("CostBreakDown", ["Local"]),
        ("CostBreakDown", [{"Cost": "1"}]),
        ("CostBreakDown", [{"Quantity": -1}]),
        ("ErrorReport", []),
        ("ErrorReport", {"NoNetwork": "1"}),
        ("ErrorReport", {"Duplicates": -1}),
        ("ErrorReport", {"Faults": {}}),
        ("sendResponse", None),
        ("sendResponse", []),
    ],
)
def test_wrong_values_are_not_of_the_contract(name, value):
    """A value outside its type or range makes the answer none."""
    with pytest.raises(UnknownOutcomeError, match="the response does not meet the contract"):
        parse_send_response(body(**{name: value}))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b'"sent"',
        b"<html>",
        b"\xff\xfe\xff",
        b'{"EventId": 5',
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"EventId": ' + b"9" * 5000 + b"}",
        body().replace(b'"Cost": 2', b'"Cost": NaN'),
        body().replace(b'"Cost": 2', b'"Cost": Infinity'),
        body().replace(b'"Cost": 2', b'"Cost": -Infinity'),
        body().replace(b'"Cost": 2', b'"Cost": 1e999'),
        body().replace(b'"Cost": 2', b'"Cost": 1e99999999999999999999'),
        body().replace(b"{", b'{"Other": NaN, '),
    ],
    ids=range(16),
)
def test_what_is_no_json_object_is_no_answer(text):
    """Whatever came instead of a JSON object with finite numbers, the outcome is unknown and nothing else."""
    with pytest.raises(UnknownOutcomeError, match="the response does not meet the contract") as caught:
        parse_send_response(text)
    assert caught.value.status == 200
    with pytest.raises(UnknownOutcomeError):
        parse_balance(text.replace(b"Cost", b"Balance").replace(b"Other", b"Balance"), "auto")


def test_an_error_quotes_nothing():
    """What the service sent is in neither the error nor what it was raised from."""
    with pytest.raises(UnknownOutcomeError) as caught:
        parse_send_response(b'{"Sample": "Hi Thandi 27821234567"')
    assert "Thandi" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("text", "billing", "expected"),
    [
        (b'{"Balance": 12.50}', "auto", Balance(Decimal("12.50"), post_paid=False)),
        (b'{"balance": 1000000}', "auto", Balance(Decimal(1000000), post_paid=True)),
        (b'{"BALANCE": 1000000.00}', "auto", Balance(Decimal("1000000.00"), post_paid=True)),
        (b'{"Balance": 1000000.01}', "auto", Balance(Decimal("1000000.01"), post_paid=False)),
        (b'{"Balance": 1000000}', "prepaid", Balance(Decimal(1000000), post_paid=False)),
        (b'{"Balance": -3, "Other": 1}', "postpaid", Balance(Decimal(-3), post_paid=True)),
    ],
)
def test_a_balance_is_read(text, billing, expected):
    """The balance is exact; exactly 1000000 means post-paid, unless the kind of account is stated."""
    actual = parse_balance(text, billing)
    assert expected == actual


@pytest.mark.parametrize("text", [b"{}", b'{"Balance": "1"}', b'{"Balance": null}', b'{"Balance": true}', b"7"])
def test_what_is_no_balance_is_no_answer(text):
    """A balance is a number in an object."""
    with pytest.raises(UnknownOutcomeError, match="the response does not meet the contract"):
        parse_balance(text, "auto")


def test_a_response_that_has_a_field_in_capitals_and_in_small_letters_is_unknown():
    """Of two values of one field nobody can say which holds: nothing is proved by either."""
    body = b'{"Cost": 1, "RemainingBalance": 9, "EventId": 7, "Messages": 1, "messages": 0, "Parts": 1}'
    with pytest.raises(UnknownOutcomeError, match="a field occurs twice"):
        parse_send_response(body)
