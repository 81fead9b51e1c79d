"""Defects that a real proxy brings to light: its responses are taken for those of the service."""

from __future__ import annotations

from support.faults.mutation import CLIENT, Mutation

PROXIES = "tests/faults/test_proxies.py"
STATUSES = "tests/faults/test_statuses.py"
THROUGH = "test_through_real_proxies_the_promise_holds"

PROXY_MUTATIONS = (
    Mutation(
        "whoever asks to wait has not passed the request on",
        "service/errors.py",
        "    kind = _kind(response.status, own=bool(code))\n",
        "    kind = _kind(response.status, own=bool(code or response.retry_after))\n",
        (PROXIES, STATUSES),
        first=THROUGH,
    ),
    Mutation(
        "a connection that ends without a byte was closed before the request",
        "service/transport.py",
        "            if exchange.written:\n",
        '            if exchange.written and not reason.startswith("Remote end closed"):\n',
        (PROXIES, CLIENT),
        first=THROUGH,
    ),
)
