from __future__ import annotations

import json

import pytest

from airflow_provider_sms.service.echoes import WITHHELD
from airflow_provider_sms.service.redaction import redacted_response, reported
from airflow_provider_sms.service.responses import ErrorReport, parse_send_response

FAULT = {"rawDestination": "082 123 4567", "status": "failed", "errorMessage": "no route to 27821234567"}
NETWORK = {"Network": "to 27821234567", "Cost": 0.5, "Quantity": 2, "Details": "27821234567"}
REPORT = {"NoNetwork": 1, "FirstFailed": 27821234567, "of 27821234567": 2, "Faults": [FAULT], "More": "27821234567"}
BODY = {"Cost": 0.10, "RemainingBalance": 12.50, "EventId": 2**53 + 1, "Messages": 2, "Parts": 3, "Sample": "Dear Ann"}
BODY |= {"CostBreakDown": [NETWORK], "ErrorReport": REPORT, "Extra": {"27821234567": "27821234567"}}


def redacted(texts=(), **changes):
    return redacted_response(parse_send_response(json.dumps({**BODY, **changes}).encode()), texts)


def faults(*found, texts=()):
    return [each["errorMessage"] for each in redacted(texts, ErrorReport={"Faults": found})["ErrorReport"]["Faults"]]


def test_the_fields_of_the_contract_are_kept_and_name_nobody():
    """Whatever else a response has, ``Sample`` included, is left out; numbers in names and words are masked."""
    assert redacted() == {
        "Cost": 0.1,
        "RemainingBalance": 12.5,
        "EventId": "9007199254740993",
        "Messages": 2,
        "Parts": 3,
        "CostBreakDown": [{"Network": "to 2782*****67", "Cost": 0.5, "Quantity": 2}],
        "ErrorReport": {
            "NoNetwork": 1,
            "Duplicates": 0,
            "OptedOuts": 0,
            "of 2782*****67": 2,
            "Faults": [{"errorMessage": "no route to 2782*****67"}],
        },
    }


def test_what_is_kept_reads_as_the_response_itself():
    """Summaries add up what the ledger keeps: redacted once more, it stays as it is."""
    kept = redacted()
    again = parse_send_response(json.dumps(kept).encode())
    assert (redacted_response(again, ()), again.event_id) == (kept, BODY["EventId"])


def test_names_that_the_service_chose_are_harmless():
    """Networks and further counters are free text, which summaries, logs and pages show, and a database keeps."""
    names = ["of 2782,1234,567", "No\ud83d", "No\0", "x" * 40]
    counts = {"of 2782*****67": 1, "No": 2, "x" * 29 + "…": 1}
    assert {name: n for name, n in reported(ErrorReport(other=dict.fromkeys(names, 1))).items() if n} == counts
    (line,) = redacted(CostBreakDown=[{"Network": "Local\ud800"}])["CostBreakDown"]
    assert line["Network"] == "Local"


@pytest.mark.parametrize("fault", [{"status": "no"}, {"errorMessage": [], "ErrorMessage": "no"}, [[1]], 27821234567])
def test_a_fault_of_another_shape_counts_and_says_nothing(fault):
    """Its shape is not specified."""
    assert faults(fault) == [""]


def test_words_that_repeat_a_text_are_withheld():
    """The reason of another fault stays, and no text of a person does; words are cut."""
    texts = ["Dear Bob, your account is overdue", "Dear Ann, your account is overdue"]
    words = ["Content 'Dear Ann, your account' holds signs", "no route " * 50]
    first, second = faults(*words, texts=iter(texts))
    assert (first, second[:16], len(second), second[-1]) == (WITHHELD, "no route no rout", 100, "…")


def test_a_name_that_repeats_a_text_is_withheld():
    """A network or a counter may be named by what was posted."""
    response = redacted(["Dear Ann"], CostBreakDown=[{"Network": "to Dear Ann"}], ErrorReport={"no Dear Ann": 1})
    assert "Dear Ann" not in json.dumps(response)
    assert "Dear Ann" not in json.dumps(reported(ErrorReport(other={"no Dear Ann": 1}), ["Dear Ann"]))


def test_a_response_of_many_megabytes_keeps_some_kilobytes():
    """Ten thousand networks, counters and faults, each with long words: a hundred of each are kept, cut."""
    name = "\N{GRINNING FACE}" * 300
    report = {**{f"{name}{n}": n for n in range(3_000)}, "Faults": [{"errorMessage": name}] * 3_000}
    kept = redacted(CostBreakDown=[{**NETWORK, "Network": name}] * 3_000, ErrorReport=report, Extra="x" * 2**20)
    assert len(json.dumps(kept)) < 256 * 1024
