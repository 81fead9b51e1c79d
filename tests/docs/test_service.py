from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
import types
from dataclasses import dataclass, field

import pytest
from support.faults.proxy import Proxy
from support.faults.rest import until
from support.other_service import OtherService, served
from support.pages import ROOT, blocks

from airflow_provider_sms import __version__
from airflow_provider_sms.exceptions import AuthenticationError, RefusedError, ThrottledError, UnknownOutcomeError
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from airflow_provider_sms.service.errors import error_for
from airflow_provider_sms.service.responses import parse_send_response
from airflow_provider_sms.service.transport import RawResponse

PAGE = ROOT / "docs" / "service.md"
TEXT = PAGE.read_text()
TOKEN, CLIENT, SECRET = "THE-TOKEN", "THE-CLIENT-ID", "THE-API-SECRET"
OWN_ERROR = json.dumps({"statusCode": 503, "errors": [{"errorCode": "Busy", "errorMessage": "try later"}]})
MEANINGS = {
    "not processed: posted again": ThrottledError,
    "not processed: posted again, at most twice": ThrottledError,
    "not processed: the credentials are wrong": AuthenticationError,
    "refused: nobody was texted": RefusedError,
    "unknown: perhaps everybody was texted": UnknownOutcomeError,
}


@dataclass
class Http:
    """A request or a response, as the page shows it or as it was on the wire."""

    first: str
    headers: dict[str, str] = field(default_factory=dict)
    body: object = None


def read(text):
    """Return a request or a response, as it is written."""
    head, _, body = text.partition("\n\n")
    first, *lines = head.strip().splitlines()
    return Http(first, dict(line.split(": ", 1) for line in lines), json.loads(body) if body else None)


HEADERS, BULK, SENT = (read(block.code) for block in blocks(PAGE, "http"))


def rows(header):
    """Return the rows of the table with a header."""
    lines = TEXT[TEXT.index(header) :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def exchanges():
    """Return the requests of the table, each with its body or its credentials, and the body of the response, if any."""
    for request, response in rows("| Request | Response |"):
        first, *more = re.findall(r"`([^`]+)`", request)
        stated = re.match(r"`([^`]+)`", response)
        yield f"{first} HTTP/1.1", "".join(more), stated and json.loads(stated[1])


(GROUP, GROUP_BODY, _), (BALANCE, _, STATED), (TOKEN_ASKED, CREDENTIALS, TOKEN_GIVEN) = exchanges()


@pytest.fixture
def wire(sms_default):
    """What passes between a client and a sandbox: pairs of request and response; ``sms_default`` leads there."""
    passed = []

    def keep(exchange):
        passed.append(tuple(read(each.decode().replace("\r\n", "\n")) for each in exchange.pass_on()))

    config = SandboxConfig(token=TOKEN, client_id=CLIENT, client_secret=SECRET, balance=1000)
    with running_sandbox(config) as sandbox, Proxy(sandbox.base_url, None, keep) as proxy:
        sms_default(host=proxy.base_url, password=TOKEN)
        yield passed


def test_a_task_sends_the_request_of_the_page(wire, send):
    """The page's two messages, with its options, are the body that a task posts; the response is the sandbox's."""
    rows = [
        {"destination": "27820000001", "first_name": "Thandeka", "amount": 1250.5},
        {"destination": "27830000002", "first_name": "Pieter", "amount": 89.9},
    ]
    message, options = "Hi {first_name}, R{amount:.2f} is due.", BULK.body["SendOptions"]
    assert send(rows, message, send_options=options).state == "success"
    ((request, response),) = [each for each in wire if "bulkmessages" in each[0].first]
    assert (request.first, request.body) == (BULK.first, BULK.body)
    assert (response.first, response.headers["Content-Type"]) == (SENT.first, SENT.headers["Content-Type"])
    assert response.body == {**SENT.body, "EventId": response.body["EventId"]}
    assert list(response.body) == list(SENT.body)


def test_the_requests_are_those_of_the_page(wire, sms_default):
    """Headers, a text to a group, the balance after both sends, and a token that is fetched by HTTP Basic."""
    hook, body = SmsHook(), json.loads(GROUP_BODY)
    hook.send_bulk(BULK.body["Messages"])
    hook.send_group(body["Message"], body["Groups"])
    hook.get_balance()
    hook.get_conn().close()
    fields = json.loads(os.environ["AIRFLOW_CONN_SMS_DEFAULT"])
    sms_default(host=fields["host"], login=CLIENT, password=SECRET)
    hook = SmsHook()
    hook.get_balance()
    hook.get_conn().close()
    until(lambda: len(wire) == 5, seconds=30, what="the last response is kept")
    (bulk, _), (group, taken), (balance, stated), (asked, given), (by_token, _) = wire
    assert re.fullmatch(r"airflow-provider-sms/[\w.]+", HEADERS.headers["User-Agent"])
    assert balance.first == HEADERS.first
    assert {**balance.headers, "Host": "rest.example.com"} == {
        **HEADERS.headers,
        "User-Agent": f"airflow-provider-sms/{__version__}",
    }
    assert bulk.headers.keys() - balance.headers.keys() == {"Content-Length"}
    assert (group.first, group.body) == (GROUP, body)
    assert taken.body.keys() == SENT.body.keys()
    assert (balance.first, stated.first, stated.body) == (BALANCE, SENT.first, STATED)
    assert (asked.first, f"Authorization: {asked.headers['Authorization']}") == (TOKEN_ASKED, CREDENTIALS)
    assert given.body == {**TOKEN_GIVEN, "token": given.body["token"]}
    assert by_token.headers["Authorization"] == f"Bearer {given.body['token']}"


FIELDS = rows("| Field | Must be there |")


@pytest.mark.parametrize(("name", "required"), [(row[0].strip("`"), row[1]) for row in FIELDS])
def test_a_field_is_needed_as_the_page_says(name, required):
    """Without a field that must be there the outcome is unknown; without another one the response is read."""
    assert {row[0].strip("`") for row in FIELDS} == SENT.body.keys()
    for body in ({key: value for key, value in SENT.body.items() if key != name}, {**SENT.body, name: None}):
        content = json.dumps(body).encode()
        if required == "yes":
            with pytest.raises(UnknownOutcomeError, match=f"(?i): {name}: "):
                parse_send_response(content)
        else:
            assert parse_send_response(content).messages == SENT.body["Messages"]


STATUSES = [
    (int(status), OWN_ERROR if "with an" in row[0] else "", MEANINGS[row[1]])
    for row in rows("| Status | Means to this package |")
    for status in re.findall(r"`(\d{3})`", row[0])
]


@pytest.mark.parametrize(("status", "body", "kind"), STATUSES)
def test_a_status_means_what_the_page_says(status, body, kind):
    """Each status of the table is the error that the table describes."""
    response = RawResponse("bulkmessages", status, None, body.encode())
    assert type(error_for(response, secrets=(), now=0.0)) is kind


@pytest.fixture
def other(sms_default, monkeypatch):
    """The other service behind the page's adapter, to which ``sms_default`` leads."""
    import uvicorn

    code = (ROOT / "docs" / "deploy" / "adapter.py").read_text()
    other = OtherService(TOKEN)
    with served(other.answer) as url, socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("OTHER_SMS_URL", url)
        module = types.ModuleType("adapter")
        monkeypatch.setitem(sys.modules, "adapter", module)
        exec(compile(code, "adapter.py", "exec"), vars(module))
        server = uvicorn.Server(uvicorn.Config(module.app, http="h11", ws="none", lifespan="off", log_config=None))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        sms_default(host=f"http://127.0.0.1:{listener.getsockname()[1]}/v1", password=TOKEN)
        try:
            yield other
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize(
    ("behaves", "state", "accepted", "unknown"),
    [
        ([], "success", 3, 0),
        ([201, "lost"], "failed", 2, 1),
        ([429], "success", 3, 0),
        pytest.param([402], "failed", 0, 0, marks=pytest.mark.slow),
        pytest.param([422], "failed", 0, 0, marks=pytest.mark.slow),
        pytest.param([503], "failed", 2, 1, marks=pytest.mark.slow),
    ],
)
def test_the_adapter_passes_on_what_the_other_service_says(other, send, people, behaves, state, accepted, unknown):
    """Each person has one text; throttled is sent again, refused is not sent, anything else stays unknown."""
    other.behaves.extend(behaves)
    ran = send(people(3), campaign="c", chunk_size=1, concurrency=1)
    assert (ran.state, ran.summary["accepted"], ran.summary["unknown"]) == (state, accepted, unknown)
    assert ran.summary["cost"] == 1.5 * accepted
    again = send(people(3), campaign="c", chunk_size=1)
    assert (again.summary["already_sent"], again.summary["unknown"]) == (accepted, unknown)
    assert len(other.taken) == len(set(other.taken))
    assert {(f"+2782000000{n}", f"Hi Name{n}") for n in range(3)} >= set(other.taken)


def test_the_adapter_takes_one_message_in_a_request(other, send, people):
    """Without ``chunk_size=1`` nobody is texted, and the error says what to set."""
    ran = send(people(3), campaign="c")
    assert (ran.state, other.taken) == ("failed", [])
    assert "set chunk_size=1" in ran.log
