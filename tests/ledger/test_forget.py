from __future__ import annotations

import json
from contextlib import closing

import pytest
from sqlalchemy import text
from support.sending import claimant, people

from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.forget import NumberCounts, find_number, forget_number
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.progress import note_progress
from airflow_provider_sms.ledger.purge import forget_campaign, old_campaigns
from airflow_provider_sms.ledger.remains import files_with_number, remove_remains
from airflow_provider_sms.ledger.request_queries import texted
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.masking import mask_number
from airflow_provider_sms.reporting.row_status import RequestStatuses

PERSON, *OTHERS = people(4)
NOTHING = NumberCounts(0, 0, 0, 0)
NUMBER = PERSON.destination


def claim(ledger, messages, take_over=None):
    chunk = Chunk([m.key for m in messages], [m.destination for m in messages], take_over or {})
    return ledger.commit(chunks=[chunk], claim_seconds=60.0)[0].request_id


def send(ledger, people, state=ACCEPTED, **outcome):
    request_id = claim(ledger, people)
    ledger.commit(outcomes=[Outcome(request_id, state, **outcome)])
    return request_id


def response(**fields):
    """Return a response as a raw one is kept."""
    whole = {"Cost": 1.0, "RemainingBalance": 9.0, "EventId": 7, "Sample": "Hi Ann", "Messages": 1, "Parts": 1}
    return json.dumps({**whole, **fields})


def fault(number):
    return {"RawDestination": f"+{number}", "ScrubbedDestination": number, "ErrorMessage": f"{number} is barred"}


@pytest.fixture
def forget(store):
    """Forget the person, and return what was found and what was removed."""

    def forget(number=NUMBER):
        traces = find_number(store, number)
        return traces, forget_number(store, number, traces)

    return forget


@pytest.fixture
def rows(store):
    def rows(query):
        with store.read() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    return rows


def test_a_number_goes_out_of_messages(store, enter, forget, rows):
    """Everybody else stays as they are, and a second look finds nothing."""
    send(enter(), [PERSON, *OTHERS])
    send(enter(campaign="d"), [PERSON])
    traces, gone = forget()
    assert traces.counts == gone == NumberCounts(messages=2, responses=0, reasons=0, figures=0)
    others = [(int(m.destination),) for m in OTHERS]
    assert rows("SELECT destination FROM sms_message WHERE destination > 0 ORDER BY destination") == others
    assert texted(store, NUMBER) == []
    assert find_number(store, NUMBER).counts == NOTHING


@pytest.mark.parametrize("state", [None, ACCEPTED, UNKNOWN])
def test_a_message_stays_claimed_without_its_number(enter, forget, state):
    """The key alone keeps the message from going out twice, whatever its request's state."""
    ledger = enter()
    request_id = send(ledger, [PERSON], state) if state else claim(ledger, [PERSON])
    traces, _ = forget()
    assert traces.open_requests == (0 if state == ACCEPTED else 1)
    again = enter(2)
    assert claim(again, [PERSON]) is None
    assert again.holders([PERSON.key])[PERSON.key].request_id == request_id


def test_a_request_that_is_open_gets_its_outcome_as_before(enter, forget):
    """Its process records it by the request's number; released, the message is free, and no row is left of it."""
    ledger = enter()
    first, second = claim(ledger, [PERSON]), claim(ledger, OTHERS)
    forget()
    ledger.commit(outcomes=[Outcome(first, NOT_SENT), Outcome(second, ACCEPTED)])
    assert ledger.holders([PERSON.key]) == {}


def test_an_unknown_request_can_be_decided_and_sent_again(store, enter, forget, rows):
    """The decision counts the message; one that is sent again keeps no number of before."""
    ledger = enter()
    lost = send(ledger, [PERSON], UNKNOWN)
    forget()
    again = enter(2)
    taken = claim(again, [PERSON], {PERSON.key: lost})
    assert rows("SELECT destination, request_id, taken_from FROM sms_message") == [(0, taken, lost)]
    again.commit(outcomes=[Outcome(taken, NOT_SENT)])
    assert rows("SELECT destination, request_id FROM sms_message") == [(0, lost)]
    assert resolve(store, lost, NOT_SENT, "ann") == 1
    assert rows("SELECT count(*) FROM sms_message") == [(0,)]


def test_a_retry_of_the_same_table_finds_nothing_changed(enter, forget):
    """What an earlier attempt holds is compared by key; a forgotten number equals that of no row."""
    send(enter(), [PERSON, *OTHERS])
    forget()
    earlier = enter(2).earlier()
    (block,) = earlier.own_blocks()
    assert sorted(block.destinations.tolist()) == [0, *(int(m.destination) for m in OTHERS)]


def test_a_response_loses_the_number_and_the_text(enter, forget, rows):
    """Which message each fault is about is still known by its key, as the row report of others needs it."""
    report = {"NoNetwork": 0, "Faults": [fault(OTHERS[0].destination), fault(NUMBER)]}
    send(enter(), [PERSON, *OTHERS], response=response(ErrorReport=report, EventId=int(NUMBER)))
    kept = response(Sample="Hi Bob")
    send(enter(campaign="of others"), OTHERS, response=kept)
    traces, gone = forget()
    assert traces.counts == gone == NumberCounts(messages=1, responses=1, reasons=0, figures=0)
    changed, other = (json.loads(body) for (body,) in rows("SELECT response FROM sms_request ORDER BY id"))
    assert other == json.loads(kept)
    assert changed.pop("sms_ledger_fault_keys") == [OTHERS[0].key.hex(), PERSON.key.hex()]
    report["Faults"] = [{}, {}]
    before = json.loads(response(ErrorReport=report, EventId=int(NUMBER)))
    del before["Sample"]
    assert changed == before


@pytest.mark.parametrize(
    "fields",
    [
        {"Extra": [NUMBER, {"sms_ledger_fault_keys": [["a"]]}]},
        {"sms_ledger_fault_keys": [["a"]]},
        {"sms_ledger_fault_keys": [f"{NUMBER}".rjust(32, "a")]},
        {"SMS_Ledger_Fault_Keys": NUMBER},
        {"errors": [{"messages": f"{NUMBER} is bad", "Cost": [NUMBER]}]},
        {"Extra": "".join(chr(0x660 + int(digit)) for digit in NUMBER)},
        {"Extra": "%20-%20".join(NUMBER), NUMBER: -int(NUMBER)},
        {"CostBreakDown": [{"Network": f"to {NUMBER[:5]} - / - {NUMBER[5:]}", "Cost": 1.0, "Quantity": 1}]},
    ],
)
def test_a_response_to_the_person_keeps_counts_alone(enter, forget, rows, fields):
    """So no spelling of the number survives, wherever the service wrote it; its own field of keys is no help either."""
    body = json.loads(response(ErrorReport={"NoNetwork": 0, "Faults": [fault(NUMBER)]}, **fields))
    for campaign, kept in (("c", body), ("d", {"statusCode": 200, **fields, "sendResponse": body})):
        send(enter(campaign=campaign), [PERSON], response=json.dumps(kept))
    assert forget()[1].responses == 2
    (kept,), second = rows("SELECT response FROM sms_request ORDER BY id")
    counts = {key: body[key] for key in ("Cost", "RemainingBalance", "EventId", "Messages", "Parts")}
    if "CostBreakDown" in fields:
        counts["CostBreakDown"] = [{"Network": "to forgotten", "Cost": 1.0, "Quantity": 1}]
    report = {"NoNetwork": 0, "Faults": [{}]}
    assert json.loads(kept) == {**counts, "ErrorReport": report, "sms_ledger_fault_keys": [PERSON.key.hex()]}
    assert second == (kept,)


@pytest.mark.parametrize("extra", ["[" * 100_000 + "]" * 100_000, "9" * 5_000, '"cut off'])
def test_a_response_that_cannot_be_read_is_deleted(store, enter, forget, rows, extra):
    """Nothing that the service answers keeps a number in the ledger."""
    send(enter(), [PERSON, *OTHERS], response=f'{{"Cost":1.0,"Extra":{extra}}}')
    traces, gone = forget()
    assert traces.counts == gone == NumberCounts(messages=1, responses=1, reasons=0, figures=0)
    assert rows("SELECT response FROM sms_request") == [(None,)]
    assert (texted(store, NUMBER), find_number(store, NUMBER).counts) == ([], NOTHING)


def test_a_redacted_response_loses_the_masked_number(enter, forget, rows):
    """Masked is not anonymous, so the fault loses every word. The message that it is about stays known by its key."""
    masked = {"ScrubbedDestination": mask_number(NUMBER), "ErrorMessage": f"0{NUMBER[2:6]} is barred"}
    body = {**json.loads(response(ErrorReport={"Faults": [masked]})), "sms_ledger_fault_keys": [PERSON.key.hex()]}
    del body["Sample"]
    send(enter(), [PERSON], response=json.dumps(body))
    forget()
    ((changed,),) = rows("SELECT response FROM sms_request")
    assert json.loads(changed) == {**body, "ErrorReport": {"Faults": [{}]}}


def test_a_report_still_tells_who_was_left_out(enter, forget):
    """The forgotten person's row is told apart from the others by the numbers that the ledger still has."""
    ledger = enter()
    report = {"Faults": [fault(NUMBER)]}
    everybody = [PERSON, *OTHERS]
    send(ledger, everybody, messages=3, response=response(Messages=3, ErrorReport=report))

    def statuses():
        _, (record,) = ledger.records([m.key for m in everybody])
        return [RequestStatuses(record).of(m.destination).status for m in everybody]

    before = statuses()
    assert before == ["not_sent", "accepted", "accepted", "accepted"]
    forget()
    assert statuses() == before


def test_words_that_are_tied_to_nobody_lose_the_number_too(store, enter, forget, rows):
    """A request that was not sent holds no message any more: nobody knows whose its text was."""
    ledger = enter()
    send(ledger, [PERSON], NOT_SENT, reason=f"400: +{NUMBER[:2]} {NUMBER[2:]} is barred")
    send(ledger, [PERSON], NOT_SENT, reason=f"call {mask_number(NUMBER)} or 0{NUMBER[2:]}")
    send(ledger, OTHERS, NOT_SENT, response=response(Messages=0, Parts=0, Cost=0))
    written = response(ErrorReport={"Faults": [{"Destination": int(NUMBER)}]})
    send(enter(campaign="elsewhere"), OTHERS, response=written)
    note_progress(store, "c", ledger._claimant_id, "ended", figures={"cost_breakdown": {NUMBER: 1}})
    traces, gone = forget()
    assert traces.counts == gone == NumberCounts(messages=0, responses=2, reasons=2, figures=1)
    reasons = rows("SELECT reason FROM sms_request WHERE id < 3 ORDER BY id")
    assert reasons == [("400: forgotten is barred",), ("call forgotten or forgotten",)]
    assert rows("SELECT figures FROM sms_progress") == [('{"cost_breakdown": {"forgotten": 1}}',)]
    bodies = "".join(str(body) for (body,) in rows("SELECT response FROM sms_request"))
    assert (NUMBER in bodies, "Hi Ann" in bodies) == (False, False)
    assert find_number(store, NUMBER).counts == NOTHING


FULL_WIDTH = "".join(chr(0xFF10 + int(digit)) for digit in NUMBER)


@pytest.mark.parametrize("written", ["%2B%20".join(NUMBER), f"%32{NUMBER[1:]}", " ...- ".join(NUMBER), FULL_WIDTH])
def test_a_reason_of_the_persons_request_loses_every_number(enter, forget, rows, written):
    """Signs between the digits, encodings and digits of other scripts hide none."""
    send(enter(), [PERSON], UNKNOWN, reason=f"refused: {written} is barred")
    assert forget()[1].reasons == 1
    ((reason,),) = rows("SELECT reason FROM sms_request")
    assert reason.replace("%", "") == "refused: forgotten is barred"


def test_a_longer_number_is_another_one(enter, forget, rows):
    """Digits before or after it make it somebody else's, also in a text with many digits."""
    kept = response(Sample="", ErrorReport={"Faults": [fault(f"1{NUMBER}"), fault(f"{NUMBER}1")]})
    send(enter(), OTHERS, response=kept, reason=f"call {NUMBER}1")
    traces, gone = forget()
    assert traces.counts == gone == NOTHING
    assert rows("SELECT response FROM sms_request") == [(kept,)]


def test_names_that_hold_the_number_are_counted(store, enter):
    """A name is what campaigns and runs are found by, so it stays; only a purge removes it."""
    enter(campaign=f"to {NUMBER}", run_id=f"for +{NUMBER}")
    enter(campaign="other")
    assert find_number(store, NUMBER).names == 2


def test_what_an_interrupted_command_left_is_found_again(store, enter, monkeypatch):
    """The numbers of a campaign's messages go last: what leads to the responses is there until these are done."""
    send(enter(), [PERSON], response=response())
    traces = find_number(store, NUMBER)
    write, committed = store.write, []

    def failing(lock):
        committed.append(lock)
        if len(committed) > 1:
            raise KeyboardInterrupt
        return write(lock)

    monkeypatch.setattr(store, "write", failing)
    with pytest.raises(KeyboardInterrupt):
        forget_number(store, NUMBER, traces)
    monkeypatch.undo()
    again = find_number(store, NUMBER)
    assert (again.counts.messages, again.counts.responses) == (1, 0)


def test_a_response_that_comes_after_it_is_found_again(store, enter, forget, rows):
    """While its request may be under way that is told, also after the number is gone; then another look cleans it."""
    ledger = enter(clock=store.clock)
    request_id = claim(ledger, [PERSON, OTHERS[0]])
    assert [forget()[0].under_way for _ in range(2)] == [1, 1]
    masked = {"ScrubbedDestination": mask_number(NUMBER), "Status": "_".join(NUMBER)}
    late = response(ErrorReport={"Faults": [masked]}, sms_ledger_fault_keys=[PERSON.key.hex()])
    ledger.commit(outcomes=[Outcome(request_id, ACCEPTED, response=late)])
    traces, gone = forget()
    assert (traces.under_way, traces.open_requests, gone.responses) == (0, 0, 1)
    ((body,),) = rows("SELECT response FROM sms_request")
    assert json.loads(body)["ErrorReport"] == {"Faults": [{}]}
    assert find_number(store, NUMBER).counts == NOTHING


def test_what_is_claimed_meanwhile_is_found_again(store, enter):
    """A send that runs may claim the person after the look: the next look tells it."""
    send(enter(), [PERSON])
    traces = find_number(store, NUMBER)
    claim(enter(campaign="d"), [PERSON])
    assert forget_number(store, NUMBER, traces).messages == 1
    assert find_number(store, NUMBER).counts.messages == 1


def test_a_purge_after_it_removes_the_rest(store, enter, forget, rows):
    """A campaign with a forgotten person is purged like any other."""
    send(enter(), [PERSON, *OTHERS])
    forget()
    (old,) = old_campaigns(store, 2_000_000.0)
    assert forget_campaign(store, old) == 4
    assert rows("SELECT count(*) FROM sms_message") == [(0,)]


def test_no_file_of_the_ledger_holds_the_number(tmp_path):
    """Neither a page nor the log, once the log is emptied; the other numbers are there."""
    path = tmp_path / "own.db"
    with closing(open_sqlite(path)) as store:
        report = {"Faults": [fault(NUMBER)]}
        everybody = [PERSON, *OTHERS]
        send(CampaignLedger(store, "c", claimant()), everybody, response=response(ErrorReport=report))
        forget_number(store, NUMBER, find_number(store, NUMBER))
        remove_remains(store)
    assert [files_with_number(path, m.destination) for m in everybody] == [[], [path], [path], [path]]
