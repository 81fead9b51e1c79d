"""The command ``python -m airflow_provider_sms.sandbox``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from airflow_provider_sms.sandbox.config import SandboxConfig, named_groups

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sandbox until SIGINT or SIGTERM.

    :param arguments: the command line without the program's name; None, the default, reads that of the process.
    :returns: exit status: 0 after a signal, 1 when the sandbox could not start, 2 for invalid arguments.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        config = _config(options)
    except ValueError as error:
        parser.error(str(error))
    try:  # here and not at the top: fastapi may be missing
        from airflow_provider_sms.sandbox.server import SandboxServer
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn"):
            raise
        return _failed(f"the sandbox needs {error.name}: install this package with its extra 'sandbox'")

    def announce() -> None:
        print(f"sandbox ready at {server.root_url}/v1", flush=True)  # noqa: T201 - the line that callers wait for

    try:
        server = SandboxServer(config, announce)
    except OSError as error:
        return _failed(f"the sandbox cannot start: {error}")
    server.run_until_stopped()
    return 0


def _failed(reason: str) -> int:
    print(reason, file=sys.stderr)  # noqa: T201 - a command's error
    return 1


def _config(options: argparse.Namespace) -> SandboxConfig:
    settings = vars(options)
    names = settings.pop("group")
    if names:
        settings["groups"] = named_groups(names)
    return SandboxConfig(**settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_sms.sandbox",
        description="The Messaging Service on this machine: it responds like the real one and sends nothing.",
    )
    parser.add_argument("--port", type=int, default=8025, help="TCP port; 0 picks a free one (default: 8025)")
    parser.add_argument("--host", default="127.0.0.1", help="loopback address to listen on (default: 127.0.0.1)")
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
        "--group", nargs="+", action="extend", metavar="NAME",
        help="known groups, each with five made-up members (default: customers staff)",
    )  # fmt: skip
    parser.add_argument(
        "--opted-out",
        nargs="+",
        action="extend",
        default=[],
        metavar="NUMBER",
        help="numbers that have opted out of messages",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
