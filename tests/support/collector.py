"""An OpenTelemetry collector on this machine, for Airflow's exported metrics and traces."""

from __future__ import annotations

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Span(NamedTuple):
    """A span, with the name of its parent; None for a parent that was not exported."""

    name: str
    attributes: dict
    within: str | None


class Collector:
    """Stores what is exported to it by OTLP over HTTP.

    :param port: port of the collector.
    """

    def __init__(self, port):
        self._port = port
        self._spans = {}
        self.metrics = set()
        """Pairs of a metric's name and its tags, as sorted pairs."""
        self.bodies = []

    def settings(self):
        """Return the settings by which all processes of an Airflow export to this collector."""
        where = {"OTEL_ON": "True", "OTEL_HOST": "127.0.0.1", "OTEL_PORT": str(self._port)}
        return {
            **{
                f"AIRFLOW__{section}__{name}": value
                for section in ("METRICS", "TRACES")
                for name, value in where.items()
            },
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self._port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_TRACES_EXPORTER": "otlp_proto_http",
        }

    def soon(self):
        """Return settings by which a process exports its metrics every second, not every minute and at its end.

        They are not for a process that forks: one that is forked during an export inherits the exporter's lock, and
        waits forever at its own export.
        """
        return {"AIRFLOW__METRICS__OTEL_INTERVAL_MILLISECONDS": "1000", "OTEL_METRIC_EXPORT_INTERVAL": "1000"}

    def spans(self):
        """Return the exported spans."""
        return [
            Span(span.name, attributes(span), getattr(self._spans.get(span.parent_span_id), "name", None))
            for span in list(self._spans.values())
        ]

    def take(self, path, body):
        """Store the content of one export request."""
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        self.bodies.append(body)
        if path.endswith("/traces"):
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    self._spans.update({span.span_id: span for span in scope.spans})
        else:
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        points = getattr(metric, metric.WhichOneof("data")).data_points
                        tags = {tuple(sorted(attributes(point).items())) for point in points}
                        self.metrics.update((metric.name, each) for each in tags)


def attributes(exported):
    """Return the attributes of a span or of a point."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in exported.attributes}


@contextmanager
def running_collector():
    """Run a collector on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(self.path, gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
