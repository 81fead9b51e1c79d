"""An OpenTelemetry collector on this machine, for Airflow's exported metrics."""

from __future__ import annotations

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Collector:
    """Stores what is exported to it by OTLP over HTTP.

    :param port: port of the collector.
    """

    def __init__(self, port):
        self._port = port
        self.metrics = set()
        """Pairs of a metric's name and its tags, as sorted pairs."""
        self.bodies = []

    def settings(self):
        """Return the settings by which all processes of an Airflow export to this collector."""
        where = {"OTEL_ON": "True", "OTEL_HOST": "127.0.0.1", "OTEL_PORT": str(self._port)}
        return {
            **{f"AIRFLOW__METRICS__{name}": value for name, value in where.items()},
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self._port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }

    def soon(self):
        """Return settings by which a process exports its metrics every second, not every minute and at its end.

        They are not for a process that forks: one that is forked during an export inherits the exporter's lock, and
        waits forever at its own export.
        """
        return {"AIRFLOW__METRICS__OTEL_INTERVAL_MILLISECONDS": "1000", "OTEL_METRIC_EXPORT_INTERVAL": "1000"}

    def take(self, body):
        """Store the content of one export request."""
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        self.bodies.append(body)
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points = getattr(metric, metric.WhichOneof("data")).data_points
                    tags = {tuple(sorted(attributes(point).items())) for point in points}
                    self.metrics.update((metric.name, each) for each in tags)


def attributes(exported):
    """Return the attributes of a point."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in exported.attributes}


@contextmanager
def running_collector():
    """Run a collector on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
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
