"""What real proxies do with a POST whose response fails: ``python -m support.faults.proxies``, a study.

nginx, HAProxy and Varnish, as Debian packages them, stand between client and sandbox. A proxy that repeats a request
texts people twice, and no client can prevent it. So each POST of ours carries a number in its send options: what the
service took twice from one POST was repeated by the proxy.
"""

from __future__ import annotations

import getpass
import itertools
import json
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from airflow_provider_sms.sending.outcomes import Backoff
from support.faults.arena import Arena
from support.faults.network import REQUESTS, mistreatments
from support.faults.proxy import Exchange, Proxy
from support.faults.rest import PATIENCE
from support.faults.standalone import free_port
from support.faults.tries import attempt, new_ledger
from support.processes import await_ready, listens, start, stop

PATIENCE_MS = 500
"""Milliseconds that a proxy waits for the service, instead of the packages' 50 or 60 seconds."""
NGINX = (
    "nginx -p {folder} -c config -e error.log",
    """\
{user}
worker_processes 1;
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 768; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    # Its name is the Host that the service gets, and the sandbox accepts only one of this machine.
    upstream localhost {{ server 127.0.0.1:{origin} max_fails=0; keepalive 8; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://localhost;
            proxy_connect_timeout {patience}ms;
            proxy_read_timeout {patience}ms;
            proxy_send_timeout {patience}ms;
            {more}
        }}
    }}
}}
""",
)
NGINX_KEPT = 'proxy_http_version 1.1; proxy_set_header Connection "";'
NGINX_AGAIN = "proxy_next_upstream error timeout invalid_header http_500 http_502 http_503 http_504"
HAPROXY = (
    "haproxy -W -db -f config",
    """\
defaults
    mode http
    timeout connect {patience}
    timeout client 50000
    timeout server {patience}
frontend clients
    bind 127.0.0.1:{port}
    default_backend service
backend service
    {more}
    server one 127.0.0.1:{origin}
""",
)
VARNISHD = (
    "varnishd -F -j none -n {folder}/work -f {folder}/config -a 127.0.0.1:{port} -s malloc,8m -l 1m "
    "-p backend_remote_error_holddown=0.01"
)
VARNISH = (
    VARNISHD,
    """\
vcl 4.1;
import std;
backend default {{
    .host = "127.0.0.1";
    .port = "{origin}";
    .connect_timeout = {patience}ms;
    .first_byte_timeout = {patience}ms;
    .between_bytes_timeout = {patience}ms;
}}
{more}
""",
)


class Setup(NamedTuple):
    """One configuration of a proxy.

    :param command: of the program, in the foreground.
    :param config: the text of its configuration, and what this setup adds.
    :param repeats: whether it is asked to repeat requests.
    """

    name: str
    command: str
    config: str
    more: str = ""
    repeats: bool = False


SETUPS = (
    Setup("nginx, as installed", *NGINX),
    Setup("nginx, keepalive", *NGINX, NGINX_KEPT),
    Setup("nginx, proxy_next_upstream", *NGINX, f"{NGINX_KEPT} {NGINX_AGAIN};"),
    Setup("nginx, with non_idempotent", *NGINX, f"{NGINX_KEPT} {NGINX_AGAIN} non_idempotent;", repeats=True),
    Setup("HAProxy, as installed", *HAPROXY),
    Setup("HAProxy, http-reuse always", *HAPROXY, "http-reuse always"),
    Setup("HAProxy, retry-on all-retryable-errors", *HAPROXY, "retry-on all-retryable-errors", repeats=True),
    Setup("Varnish, as installed", *VARNISH),
    Setup("Varnish, std.cache_req_body", *VARNISH, "sub vcl_recv { std.cache_req_body(1MB); }", repeats=True),
)


def silent(exchange):
    """Pass nothing on, and write no response until the proxy has given up."""
    while exchange.client.recv(65536):
        pass


def says(exchange, *, status):
    """Answer a request that was taken as another gateway would."""
    exchange.answer()
    exchange.client.sendall(b"HTTP/1.1 %d Oops\r\nContent-Length: 0\r\nRetry-After: 5\r\n\r\n" % status)


CASES = {
    "nothing": Exchange.pass_on,
    "silence": silent,
    **{f"a gateway's {status}": partial(says, status=status) for status in (500, 502, 503)},
    **{
        name: mistreat
        for name, mistreat in mistreatments().items()
        if re.match("answer (too late|twice|cut at (nothing|line|headers|body) )|request cut at nothing ", name)
    },
}


class ProxiedArena(Arena):
    """An arena that counts a message once for each POST of ours from which the service took it."""

    _numbers = itertools.count(1)

    def number(self):
        """Return the send options of the next POST, which hold its number."""
        return {"CostCentre": f"post {next(self._numbers)}"}

    def witnessed(self, start=0):
        """Count how often we sent each text to each person."""
        return Counter({sent: len(posts) for sent, posts in self._posts(start).items()})

    def repeated(self):
        """Return how many messages the proxy repeated."""
        return sum(posts.total() - len(posts) for posts in self._posts().values())

    def _posts(self, start=0):
        with self._witness.open("rb") as lines:
            lines.seek(start)
            entries = [json.loads(line) for line in lines]
        # Of the last try, which does not use the proxy, each request counts for itself.
        names = {
            each.number: (each.send_options or {}).get("CostCentre", f"request {each.number}")
            for each in self.sandbox.state.requests
        }
        found = defaultdict(Counter)
        for entry in entries:
            found[entry["destination"], entry["content"]][names[entry["request"]]] += 1
        return found


def play(arena, name, setup):
    """Let the second request of a send meet a case behind a proxy."""
    campaign = arena.campaign(4 * REQUESTS)
    with Proxy(campaign.base_url, 2, CASES[name]) as service, running(setup, service.base_url) as base_url:
        ended = attempt(
            campaign,
            base_url=base_url,
            send_options=arena.number,
            backoff=Backoff(attempts=4, base=0.001, longest=0.001, longest_retry_after=0.001),
        )
    assert service.struck, f"{name}: no second request came through {setup.name}"
    time.sleep(0.05)  # the sandbox writes its witness a moment before it remembers the request
    arena.look(campaign, ended)
    arena.resume(f"{name}, through {setup.name}", campaign)


@contextmanager
def running(setup, base_url):
    """Run a proxy in a folder of its own, and yield the base URL of the service behind it."""
    host, _, path = base_url.removeprefix("http://").partition("/")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="airflow-provider-sms-proxy-") as name:
        folder = Path(name)
        values = {"folder": folder, "origin": host.rpartition(":")[2], "port": port, "patience": PATIENCE_MS}
        user = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""  # the package's could not enter the folder
        (folder / "config").write_text(setup.config.format(**values, user=user, more=setup.more))
        process = start(setup.command.format(**values).split(), folder, folder / "output")
        try:
            await_ready(lambda: listens(port), [process], seconds=PATIENCE, what="the proxy listens")
            yield f"http://127.0.0.1:{port}/{path}"
        finally:
            stop([process], signal.SIGTERM, folder)


def main():
    """Print what came of each setup; return 1 if we texted anybody twice, or said a thing that is not so, else 0."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the proxy that runs ends with it
    os.environ["PATH"] += ":/usr/sbin"
    if not all(map(shutil.which, ("nginx", "haproxy", "varnishd"))):
        sys.exit("not installed: one of them; apt-get install nginx-light haproxy varnish")
    logging.getLogger("airflow_provider_sms").setLevel(logging.CRITICAL)
    table, broken = Table("proxy", "cases", "twice by us", "repeated by the proxy", "unknown"), 0
    for setup in SETUPS:
        with new_ledger("sqlite") as ledgers, ProxiedArena(ledgers, keep_alive=60.0) as arena:
            for name in CASES:
                play(arena, name, setup)
            repeated = arena.repeated()
        figures = arena.figures
        broken += figures.broken + (repeated > 0 and not setup.repeats)
        table.add_row(setup.name, *map(str, (figures.cases, figures.duplicates, repeated, figures.unknown)))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
