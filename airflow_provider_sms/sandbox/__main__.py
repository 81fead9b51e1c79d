"""The command ``python -m airflow_provider_sms.sandbox``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from airflow_provider_sms.sandbox.config import SandboxConfig, named_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

EXTRA = "airflow-provider-sms[sandbox]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sandbox until SIGINT or SIGTERM.

    :param arguments: the command line without the program's name; None, the default, takes the process's own.
    :returns: exit status: 0 when it was stopped, 1 when it could not start, 2 for wrong arguments.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        config = _config(given)
    except ValueError as error:
        parser.error(str(error))
    try:  # here and not at the top: fastapi may be missing
        from airflow_provider_sms.sandbox.server import SandboxServer
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn"):
            raise
        return _failed(f"the sandbox needs {error.name}: pip install '{EXTRA}'")

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


def _config(given: argparse.Namespace) -> SandboxConfig:
    settings = vars(given)
    names = settings.pop("group")
    if names:
        settings["groups"] = named_groups(names)
    return SandboxConfig(**settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_sms.sandbox",
        description="The Messaging Service on this machine: it answers like the real one and sends nothing.",
    )
    parser.add_argument("--port", type=int, default=8025, help="TCP port; 0 takes a free one (default: 8025)")
    parser.add_argument("--host", default="127.0.0.1", help="loopback address to listen on (default: 127.0.0.1)")
    parser.add_argument("--token", help="bearer token that is accepted")
    parser.add_argument("--client-id", metavar="ID", help="client id that may fetch tokens")
    parser.add_argument("--client-secret", metavar="SECRET", help="API secret of the client id")
    parser.add_argument("--balance", default="1000", metavar="CREDITS", help="credit at the start (default: 1000)")
    parser.add_argument("--post-paid", action="store_true", help="deduct nothing, report a balance of 1000000")
    parser.add_argument(
        "--latency", type=float, default=0.0, metavar="SECONDS", help="time that every send answer waits"
    )
    parser.add_argument("--log", metavar="FILE", help="append every accepted message to this file before answering")
    parser.add_argument(
        "--group", nargs="+", action="extend", metavar="NAME",
        help="known groups, each with made-up members (default: customers staff)",
    )  # fmt: skip
    parser.add_argument(
        "--opted-out",
        nargs="+",
        action="extend",
        default=[],
        metavar="NUMBER",
        help="numbers that want no messages",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
