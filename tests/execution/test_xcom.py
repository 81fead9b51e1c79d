from __future__ import annotations

import pytest

from airflow_provider_sms.execution.xcom import for_xcom, report_url, sandbox_url
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
