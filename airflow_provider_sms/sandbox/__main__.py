"""The command ``python -m airflow_provider_sms.sandbox``."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from typing import TYPE_CHECKING

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sandbox until SIGINT or SIGTERM.

    :param arguments: the command line without the program's name; None, the default, reads that of the process.
    :returns: exit status: 0 after a signal, 1 when the sandbox could not start, 2 for invalid arguments.
    """
    parser = _parser()
    try:
        config = SandboxConfig(**vars(parser.parse_args(arguments)))
    except ValueError as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with running_sandbox(config) as sandbox:
            print(f"sandbox ready at {sandbox.base_url}", flush=True)  # noqa: T201 - the line that callers wait for
            threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        print(f"the sandbox cannot start: {error}", file=sys.stderr)  # noqa: T201 - a command's error
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_sms.sandbox",
        description="The Messaging Service on this machine: it responds like the real one and sends nothing.",
    )
    parser.add_argument("--port", type=int, default=8025, help="TCP port; 0 picks a free one (default: 8025)")
    parser.add_argument("--token", help="bearer token to accept")
    parser.add_argument("--client-id", metavar="ID", help="client id that may fetch tokens")
    parser.add_argument("--client-secret", metavar="SECRET", help="API secret of the client id")
    parser.add_argument("--balance", default="1000", metavar="CREDITS", help="initial balance (default: 1000)")
    parser.add_argument("--post-paid", action="store_true", help="deduct nothing and report a balance of 1000000")
    parser.add_argument(
        "--latency", type=float, default=0.0, metavar="SECONDS", help="delay of every response to a send request"
    )
    parser.add_argument("--log", metavar="FILE", help="append every accepted message to this file before responding")
    parser.add_argument(
        "--group", dest="groups", nargs="+", default=["customers", "staff"], metavar="NAME",
        help="known groups, each with five made-up members (default: customers staff)",
    )  # fmt: skip
    parser.add_argument(
        "--opted-out", nargs="+", default=[], metavar="NUMBER", help="numbers that have opted out of messages"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
