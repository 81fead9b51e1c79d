import json
import time
from email.utils import formatdate

import pytest

from airflow_provider_sms.exceptions import AuthenticationError, RefusedError, ThrottledError, UnknownOutcomeError
from airflow_provider_sms.service.echoes import WITHHELD
from airflow_provider_sms.service.errors import error_for, retry_after_seconds
from airflow_provider_sms.service.transport import RawResponse

NOW = 784111777.0


def made(status=400, body=b"", secrets=(), texts=(), retry_after=None):
    body = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    return error_for(RawResponse("bulkmessages", status, retry_after, body), secrets=secrets, texts=texts, now=NOW)


@pytest.mark.parametrize(
    ("expected", "statuses"),
    [
        (AuthenticationError, [401]),
        (ThrottledError, [429]),
        (RefusedError, [300, 301, 302, 304, 307, 308, 400, 402, 403, 404, 407, 413, 415, 422, 425, 431, 451, 498]),
        (UnknownOutcomeError, [201, 202, 204, 206, 299, 303, 408, 499, 500, 501, 502, 504, 505, 520, 599, 600, 999]),
    ],
)
@pytest.mark.parametrize("body", [b"", {"errorCode": "Busy", "errorMessage": "Later"}], ids=["empty", "own words"])
def test_the_status_decides(expected, statuses, body):
    """Each but 503 has one meaning whatever its body says, and only where a retry is safe the error has a wait."""
    for status in statuses:
        error = made(status, body, retry_after="7")
        assert (type(error), error.status) == (expected, status)
        assert f"(HTTP {status}" in str(error)
        assert error.retry_after == (7.0 if expected is ThrottledError else None)


OWN = [
    {"errorCode": "Busy"},
    {"ERRORCODE": "Busy", "errorMessage": "Later"},
    {"statusCode": 503, "errors": [{"errorMessage": "Later"}, {"ErrorCode": "Busy"}]},
]
ANYBODYS = [
    {"statusCode": 503, "errors": [{"errorMessage": "Later"}]},
    {"statusCode": 503, "errors": []},
    *({"errorCode": code} for code in ("", None, 503)),
    {"message": "Service Unavailable"},
    {"fault": {"faultstring": "Down", "detail": {"errorcode": "messaging.Down"}}},
    [{"errorCode": "Busy"}],
    b'{"errorCode": "Bu',
    b"<html>errorCode: Busy</html>",
    b"upstream connect error or disconnect/reset before headers",
    b"",
]


@pytest.mark.parametrize(
    ("body", "expected"), [(each, ThrottledError) for each in OWN] + [(each, UnknownOutcomeError) for each in ANYBODYS]
)
def test_only_the_services_own_503_says_that_nothing_was_processed(body, expected):
    """Anybody between client and service says 503, also of what was passed on; an ``errorCode`` is the service's."""
    error = made(503, body, retry_after="5")
    assert (type(error), error.retry_after) == (expected, 5.0 if expected is ThrottledError else None)


LISTED = {
    "statusCode": 403,
    "errors": [
        {"errorCode": "InsufficientCredits", "errorMessage": "Not enough credits"},
        {"errorCode": "Other", "errorMessage": "Top up"},
    ],
}


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (LISTED, "InsufficientCredits", "Not enough credits; Top up"),
        ({"ERRORS": [{"ERRORCODE": "A.B", "ErrorMessage": "No"}]}, "A.B", "No"),
        ({"ErrorCode": "A.B", "errorMessage": "No"}, "A.B", "No"),
        ({"errorCode": "A.B", "errors": []}, "A.B", ""),
        ({"errorMessage": "No"}, None, "No"),
        ({"errors": [None, 7, {"errorMessage": None}, {"errorMessage": "No"}]}, None, "No"),
        ({"message": "No"}, None, '{"message": "No"}'),
        (b"No\r\n\x00such   thing\n", None, "No such thing"),
        (b" <html><body>No</body></html>", None, ""),
        (b"\xff\xfe\x00", None, ""),
        (b"", None, ""),
        (b"[" * 200_000, None, "[" * 299 + "…"),
        (b"no " * 1000, None, ("no " * 1000)[:299] + "…"),
        ({"errorMessage": "no " * 1000}, None, ("no " * 1000)[:299] + "…"),
    ],
    ids=range(14),
)
def test_the_services_own_words_are_carried(body, code, words):
    """Code and words come from either known form, else from a short text; HTML and binary say nothing."""
    error = made(403, body)
    assert code == error.code
    label = f"HTTP 403, {code}" if code else "HTTP 403"
    assert f"bulkmessages: the service refused the request ({label})" + (f": {words}" if words else "") == str(error)


@pytest.mark.parametrize("form", ["{}", '{{"errorMessage": "{}"}}'])
def test_nothing_hidden_is_repeated(form):
    """Words that repeat a token, a secret or a text are withheld, also where they are cut before it."""
    error = made(
        400, form.format("token abcd-def for 27821234567").encode(), secrets=["abcd-def", ""], texts=["Hi Thandi!"]
    )
    assert str(error).endswith(f": {WITHHELD}")
    error = made(400, form.format("x" * 295 + "SECRETSECRET").encode(), secrets=["SECRETSECRET"])
    assert "SEC" not in str(error)


@pytest.mark.parametrize(
    "code", ["secret-token", "InvalidKey.secret-token", "no code, but words", "27821234567 is bad", "a\nb", "x" * 65]
)
def test_a_code_has_the_form_of_a_code(code):
    """Anything else may be a text or a number, and a token may have that form."""
    error = made(400, {"errorCode": code, "errorMessage": "No"}, secrets=["secret-token"])
    assert (error.code, str(error).endswith("(HTTP 400): No")) == (None, True)
    assert made(400, {"errorCode": "27821234567"}).code == "2782*****67"


def test_a_code_stays_though_a_text_says_the_same():
    """A send waits for credit by this code, so a text about credit does not blank it."""
    text = "You have insufficient credits. Recharge at once"
    assert made(403, {"errorCode": "InsufficientCredits"}, texts=[text]).code == "InsufficientCredits"
    assert made(403, {"errorCode": "Rejected.HivPositive"}, texts=["HivPositive"]).code is None


def test_the_longest_words_take_no_time():
    """Only the beginning of 10 MB of words is looked at: no more of it could show."""
    text = "Your appointment is at ten. " * 50
    began = time.process_time()
    made(400, {"errorMessage": "You are no " * 1_000_000}, texts=[f"{number} {text}" for number in range(100)])
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((nonsense, None) for nonsense in (None, "", "-5", "1.5", "²", "1, 2", "soon")),
        ("0", 0.0),
        (" 120 ", 120.0),
        ("9" * 400, 2.0**31),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60.0),
        ("Sun Nov  6 08:50:37 1994", 60.0),
        ("Sun, 06 Nov 1994 99:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 +999999", None),
    ],
)
def test_retry_after_is_read_in_both_forms(value, expected, monkeypatch):
    """Seconds, or any form of an HTTP date (RFC 9110 sections 5.6.7, 10.2.3), in UTC whatever the machine's zone."""
    monkeypatch.setenv("TZ", "Africa/Johannesburg")
    time.tzset()
    try:
        assert retry_after_seconds(value, NOW) == expected
    finally:
        monkeypatch.undo()
        time.tzset()
