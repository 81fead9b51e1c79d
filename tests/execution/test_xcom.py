from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from airflow_provider_sms.execution.xcom import RESPONSES, for_xcom, push_responses, report_url, sandbox_url
from airflow_provider_sms.service.redaction import FAULT_KEYS


@pytest.fixture
def opened_at(monkeypatch):
    """Configure where reports can be opened."""
    return lambda template: monkeypatch.setenv("AIRFLOW__SMS__REPORT_URL", template)


@pytest.mark.parametrize(
    ("template", "report", "url"),
    [
        ("https://files.example.com{path}", "/data/r 1.parquet", "https://files.example.com/data/r%201.parquet"),
        ("https://x/open?file={path}&raw=1", "/data/r&b.parquet", "https://x/open?file=/data/r%26b.parquet&raw=1"),
        ("https://x/{path}", "s3://bucket/reports/r.parquet", "https://x/bucket/reports/r.parquet"),
        ("https://x/{path}", "s3://my_aws@bucket/r@1.parquet", "https://x/bucket/r%401.parquet"),
        ("https://x/reports", "/data/r.parquet", "https://x/reports"),
        ("", "/data/r.parquet", None),
        ("javascript:alert('{path}')", "/data/r.parquet", None),
    ],
)
def test_a_report_is_opened_where_the_configuration_says(opened_at, template, report, url):
    """Its path is quoted; connections stay out; an address is one of the web, or there is none."""
    opened_at(template)
    assert report_url(report) == url


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("http://127.0.0.1:8099/v1", "http://127.0.0.1:8099/"),
        ("http://localhost:8099/v1", "http://localhost:8099/"),
        ("http://[::1]:8099/v1", "http://[::1]:8099/"),
        ("http://user:secret@127.0.0.1:8099/v1", "http://127.0.0.1:8099/"),
        ("https://rest.example.com/v1", None),
        ("http://10.0.0.1/v1", None),
        ("https://127.0.0.1.example.com/v1", None),
    ],
)
def test_only_a_service_of_this_machine_is_a_sandbox(base_url, url):
    """Its page stands at the root, and no secret is in the address."""
    assert sandbox_url(base_url) == url


def test_a_response_that_the_ledger_kept_raw_is_redacted_on_its_way_into_an_xcom():
    """An older version kept it, or a task that asked for raw responses; raw means all that the ledger has of it."""
    body = '{"Cost": 1, "Sample": "Dear Ann", "ErrorReport": {"Faults": ["27820000003"]}}'
    assert for_xcom(body, raw=False) == {"Cost": 1, "ErrorReport": {"Faults": ["2782*****03"]}}
    assert for_xcom(body, raw=True) == {"Cost": 1, "Sample": "Dear Ann", "ErrorReport": {"Faults": ["27820000003"]}}


@pytest.mark.parametrize("raw", [False, True])
def test_a_field_that_the_ledger_added_is_in_no_xcom(raw):
    """The message keys of faults are not the service's."""
    assert for_xcom(f'{{"Cost": 1, "{FAULT_KEYS}": [null]}}', raw=raw) == {"Cost": 1}


@pytest.mark.parametrize("raw", [False, True])
def test_any_response_can_be_an_xcom(raw):
    """Airflow's messages take 64-bit integers, its database no NUL or half an emoji, and both few levels."""
    least, most = -(2**63), 2**64 - 1
    fields = {"Batch": [most, most + 1, least, least - 1, 0.5, True, None], "\ud83d\0": "Hi \ud83d\0"}
    shown = {"Batch": [most, str(most + 1), least, str(least - 1), 0.5, True, None], "??": "Hi ??"}
    assert for_xcom(json.dumps(fields), raw=raw) == shown
    deep = for_xcom(f'{{"Cost": 1, "Extra": {"[" * 400}{"]" * 400}}}', raw=raw)
    assert (deep["Cost"], json.dumps(deep).count("["), "*****" in json.dumps(deep)) == (1, 50, True)
    assert for_xcom(f'{{"Cost": 1, "Extra": {"[" * 100_000}{"]" * 100_000}}}', raw=raw) == {"truncated": True}


def test_responses_that_cannot_be_pushed_fail_no_send(caplog):
    """Everybody is texted by then and the ledger has the responses; a timeout or a signal still ends the task."""

    def failing(error):
        def xcom_push(key, value):
            raise error

        return {"task": SimpleNamespace(do_xcom_push=True), "ti": SimpleNamespace(xcom_push=xcom_push)}

    push_responses(failing(OverflowError("27820000003")), [{}])
    assert "OverflowError" in caplog.text
    assert "27820000003" not in caplog.text
    with pytest.raises(KeyboardInterrupt):
        push_responses(failing(KeyboardInterrupt()), [{}])
    pushed = {}
    ti = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}))
    push_responses({"task": SimpleNamespace(do_xcom_push=True), "ti": ti}, [{"Cost": 1}])
    assert pushed == {RESPONSES: [{"Cost": 1}]}
