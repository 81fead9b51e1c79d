from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from airflow_provider_sms.execution.tracing import span


@pytest.fixture(scope="module")
def exporter():
    """Where this process's spans go: OpenTelemetry takes a provider only once."""
    exporter = InMemorySpanExporter()
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(TracerProvider())
    trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


@pytest.fixture
def spans(exporter):
    """The spans of ours that have ended in this test, by name."""
    exporter.clear()
    return lambda: {each.name: each for each in exporter.get_finished_spans() if each.name.startswith("sms.")}


def test_the_check_and_the_sending_are_spans(send, people, spans):
    """With counts as their attributes."""
    send(people(150, destination=["12", *(str(27_820_000_000 + n) for n in range(149))]), "Hi", on_invalid="skip")
    assert {name: dict(each.attributes) for name, each in spans().items()} == {
        "sms.check": {"sms.rows": 150, "sms.invalid": 1},
        "sms.send": {"sms.messages": 149, "sms.requests": 2, "sms.accepted": 149, "sms.unknown": 0},
    }


def test_they_are_within_the_span_that_is_open(spans):
    """Airflow's own of the task is, where it has one."""
    with trace.get_tracer("airflow").start_as_current_span("worker.send") as task, span("sms.check"):
        pass
    assert spans()["sms.check"].parent.span_id == task.get_span_context().span_id


def test_an_error_is_named_by_its_kind(spans):
    """Its words and its trace may quote a row."""
    with pytest.raises(ValueError, match="2782"), span("sms.check"):
        raise ValueError("27820000000")
    ended = spans()["sms.check"]
    assert (ended.status.status_code, ended.status.description) == (trace.StatusCode.ERROR, "ValueError")
    assert "27820000000" not in ended.to_json()


def test_no_person_is_in_a_span(send, people, spans):
    """A check that refuses rows does not tell them to whoever traces."""
    send(people(3, destination=["x0820000001", "27820000002", "27820000003"]))
    shown = "".join(each.to_json() for each in spans().values())
    assert shown
    assert not any(word in shown for word in ("82000000", "Name0", "Hi "))
