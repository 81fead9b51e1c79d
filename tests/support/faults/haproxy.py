"""HAProxy, with Debian's defaults."""

from __future__ import annotations

import signal

from support.faults.intermediary import PATIENCE_MS, SHORT_MS, Intermediary, Setup

CONFIG = """\
global
    stats socket {folder}/admin.sock mode 600 level admin
defaults
    mode http
    option httplog
    option dontlognull
    timeout connect {patience}
    timeout client 50000
    timeout server {patience}
    errorfile 400 /etc/haproxy/errors/400.http
    errorfile 403 /etc/haproxy/errors/403.http
    errorfile 408 /etc/haproxy/errors/408.http
    errorfile 500 /etc/haproxy/errors/500.http
    errorfile 502 /etc/haproxy/errors/502.http
    errorfile 503 /etc/haproxy/errors/503.http
    errorfile 504 /etc/haproxy/errors/504.http
frontend clients
    bind 127.0.0.1:{port} {bind}
{frontend}
    default_backend service
backend service
{backend}
    server one 127.0.0.1:{origin}
"""

AGAIN = "    retry-on all-retryable-errors\n    option redispatch 1\n    server two 127.0.0.1:{origin}"


class HAProxy(Intermediary):
    """HAProxy as a reverse proxy."""

    program = "haproxy"
    package = "haproxy"
    setups = (
        Setup("as installed", {}),
        Setup("http-reuse always", {"backend": "    http-reuse always"}),
        Setup("http-server-close", {"backend": "    option http-server-close"}),
        Setup("http-buffer-request", {"frontend": "    option http-buffer-request"}),
        Setup("redispatch, two servers", {"backend": "    option redispatch 1\n    server two 127.0.0.1:{origin}"}),
        Setup(
            "timeout http-keep-alive 50 ms",
            {"frontend": f"    timeout http-keep-alive {SHORT_MS}"},
            pause=SHORT_MS / 1000,
        ),
        Setup(
            "retry-on all-retryable-errors, disable-l7-retry",
            {"backend": f"{AGAIN}\n    http-request disable-l7-retry if METH_POST"},
        ),
        Setup("TLS", {"bind": "ssl crt both.pem"}, tls=True),
        Setup("retry-on all-retryable-errors", {"backend": AGAIN}, resends=True),
        Setup("retry-on empty-response", {"backend": "    retry-on conn-failure empty-response"}, resends=True),
    )

    def configure(self) -> None:
        settings = {"bind": "", "frontend": "", "backend": "", **self.setup.settings}
        text = CONFIG.format(
            folder=self.folder,
            origin=self._origin_port,
            port=self.port,
            patience=PATIENCE_MS,
            **{place: value.format(origin=self._origin_port) for place, value in settings.items()},
        )
        (self.folder / "haproxy.cfg").write_text(text)

    def command(self) -> list[str]:
        return ["-W", "-db", "-f", "haproxy.cfg"]

    def reload(self) -> None:
        self._process.send_signal(signal.SIGUSR2)
