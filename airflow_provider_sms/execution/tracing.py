"""Spans within the one that Airflow has of the task."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def span(name: str) -> Iterator[dict[str, int | str]]:
    """Measure a block as a span; without an effect where no tracing is configured.

    Airflow sets up OpenTelemetry for tasks, and has a span of the task, from 3.2 on. Of an error the span says the
    kind: its words may quote a row.

    :return: a dict for the span's attributes: counts, and kinds of errors. It is read when the block ends.
    """
    from opentelemetry import trace

    figures: dict[str, int | str] = {}
    tracer = trace.get_tracer("airflow_provider_sms")
    with tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as current:
        try:
            yield figures
        except Exception as error:
            current.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__name__))
            raise
        finally:
            current.set_attributes({f"sms.{key}": value for key, value in figures.items()})
