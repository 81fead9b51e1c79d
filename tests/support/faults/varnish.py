"""Varnish, with its built-in VCL."""

from __future__ import annotations

import itertools
import shutil
import subprocess

from support.faults.intermediary import PATIENCE_MS, SHORT_MS, Intermediary, Setup

VCL = """\
vcl 4.1;
import std;
backend default {{
    .host = "127.0.0.1";
    .port = "{origin}";
    .connect_timeout = {patience}ms;
    .first_byte_timeout = {patience}ms;
    .between_bytes_timeout = {patience}ms;
}}
{vcl}
"""

CLOSED = 'sub vcl_backend_fetch { set bereq.http.Connection = "close"; }'
CACHED = "sub vcl_recv { std.cache_req_body(1MB); }"
RETRY = """
sub vcl_backend_response { if (beresp.status >= 500) { return (retry); } }
sub vcl_backend_error { return (retry); }
"""


class Varnish(Intermediary):
    """Varnish as a reverse proxy."""

    program = "varnishd"
    package = "varnish"
    setups = (
        Setup("as installed", {}),
        Setup("bereq.http.Connection: close", {"vcl": CLOSED}),
        Setup(
            "pipe",
            {"vcl": "sub vcl_recv { return (pipe); }", "options": f"-p pipe_timeout={PATIENCE_MS / 1000}"},
        ),
        Setup("return (retry)", {"vcl": RETRY}),
        Setup("timeout_idle of 50 ms", {"options": f"-p timeout_idle={SHORT_MS / 1000}"}, pause=SHORT_MS / 1000),
        Setup("std.cache_req_body, bereq.http.Connection: close", {"vcl": CACHED + CLOSED}),
        Setup("std.cache_req_body", {"vcl": CACHED}, resends=True),
        Setup("std.cache_req_body, return (retry)", {"vcl": CACHED + RETRY}, resends=True),
    )
    _loads = itertools.count()

    def configure(self) -> None:
        text = VCL.format(origin=self._origin_port, patience=PATIENCE_MS, vcl=self.setup.settings.get("vcl", ""))
        (self.folder / "default.vcl").write_text(text)

    def command(self) -> list[str]:
        return [
            *("-F", "-j", "none", "-n", str(self.folder / "work"), "-f", str(self.folder / "default.vcl")),
            *("-a", f"127.0.0.1:{self.port}", "-p", "feature=+http2", "-s", "malloc,8m", "-l", "1m"),
            # Seconds without another attempt after an origin refused a connection, instead of 0.25.
            *("-p", "backend_remote_error_holddown=0.01"),
            *self.setup.settings.get("options", "").split(),
        ]

    def reload(self) -> None:
        name = f"again{next(self._loads)}"
        admin = [str(shutil.which("varnishadm")), "-n", str(self.folder / "work")]
        for line in (["vcl.load", name, str(self.folder / "default.vcl")], ["vcl.use", name]):
            subprocess.run([*admin, *line], check=True, capture_output=True)
