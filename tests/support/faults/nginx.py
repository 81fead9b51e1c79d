"""nginx, with Debian's defaults and ``proxy_pass``."""

from __future__ import annotations

import getpass
import os
import signal

from support.faults.intermediary import PATIENCE_MS, SHORT_MS, Intermediary, Setup

CONFIG = """\
{user}
worker_processes 1;
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{
    worker_connections 768;
}}
http {{
    sendfile on;
    tcp_nopush on;
    types_hash_max_size 2048;
    default_type application/octet-stream;
    access_log {folder}/access.log;
    gzip on;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    # The upstream's name is the Host that the service gets, and the sandbox accepts only one of this machine.
    upstream localhost {{
        server 127.0.0.1:{origin} max_fails=0;
        {upstream}
    }}
    server {{
        listen 127.0.0.1:{port} {listen};
        {server}
        location / {{
            proxy_pass http://localhost;
            proxy_connect_timeout {patience}ms;
            proxy_read_timeout {patience}ms;
            proxy_send_timeout {patience}ms;
            {location}
        }}
    }}
}}
"""

KEEP = "keepalive 8;"
KEPT = 'proxy_http_version 1.1; proxy_set_header Connection "";'
ANOTHER = "server 127.0.0.1:{origin} max_fails=0;"
AGAIN = "proxy_next_upstream error timeout invalid_header http_500 http_502 http_503 http_504 http_429"


class Nginx(Intermediary):
    """nginx as a reverse proxy."""

    program = "nginx"
    package = "nginx-light"
    setups = (
        Setup("as installed", {}),
        Setup("keepalive", {"upstream": KEEP, "location": KEPT}),
        Setup(
            "keepalive, unbuffered",
            {"upstream": KEEP, "location": KEPT + " proxy_request_buffering off; proxy_buffering off;"},
        ),
        Setup("keepalive, two servers", {"upstream": ANOTHER + KEEP, "location": KEPT}),
        Setup(
            "proxy_next_upstream of all but non_idempotent",
            {"upstream": ANOTHER + KEEP, "location": KEPT + AGAIN + ";"},
        ),
        Setup(
            "keepalive_timeout of 50 ms",
            {"upstream": KEEP, "location": KEPT, "server": f"keepalive_timeout {SHORT_MS}ms;"},
            pause=SHORT_MS / 1000,
        ),
        Setup(
            "TLS, keepalive",
            {
                "upstream": KEEP,
                "location": KEPT,
                "listen": "ssl",
                "server": "ssl_certificate both.pem; ssl_certificate_key both.pem;",
            },
            tls=True,
        ),
        Setup(
            "non_idempotent, one server",
            {"upstream": KEEP, "location": f"{KEPT} {AGAIN} non_idempotent;"},
            resends=True,
        ),
        Setup(
            "non_idempotent, two servers",
            {"upstream": ANOTHER + KEEP, "location": f"{KEPT} {AGAIN} non_idempotent;"},
            resends=True,
        ),
    )

    def configure(self) -> None:
        settings = {"upstream": "", "listen": "", "server": "", "location": "", **self.setup.settings}
        text = CONFIG.format(
            # The package's user could not enter the folder.
            user=f"user {getpass.getuser()};" if os.geteuid() == 0 else "",
            folder=self.folder,
            origin=self._origin_port,
            port=self.port,
            patience=PATIENCE_MS,
            **{place: value.format(origin=self._origin_port) for place, value in settings.items()},
        )
        (self.folder / "nginx.conf").write_text(text)

    def command(self) -> list[str]:
        return ["-p", str(self.folder), "-c", "nginx.conf", "-e", "error.log"]

    def reload(self) -> None:
        self._process.send_signal(signal.SIGHUP)
