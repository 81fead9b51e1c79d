"""Screenshots of the sandbox's page, after a campaign that met some faults."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.screenshots.shots import Shot
from support.screenshots.traffic import SOMEBODY, send

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "made-up-token"
narrow_shot = partial(Shot, width=390, height=844, scale=1.5)


@contextmanager
def shots() -> Iterator[list[Shot]]:
    """Run a sandbox with some traffic, and yield the shots of its page."""
    config = SandboxConfig(token=TOKEN, balance=5000, groups={"staff": [f"27600000{n:03}" for n in range(1, 5)]})
    with running_sandbox(config) as sandbox:
        send(sandbox, TOKEN)
        root = sandbox.base_url.removesuffix("v1")
        yield [
            Shot("inbox-requests", root, prepare=_opened),
            Shot("inbox-numbers", f"{root}#/numbers/{SOMEBODY}", prepare=_read),
            narrow_shot("inbox-narrow-number", f"{root}#/numbers/{SOMEBODY}", prepare=_read),
            narrow_shot("inbox-narrow-panel", f"{root}#/panel", prepare=_advised),
        ]


def _listed(page: Any) -> None:
    page.locator("#live[data-live=yes]").wait_for()
    page.locator("#requests > li").nth(3).wait_for()


def _opened(page: Any) -> None:
    _listed(page)
    page.locator(".request", has_text="drop_after").click()
    page.locator(".detail .message").first.wait_for()
    page.mouse.move(0, 0)
    _advised(page)


def _read(page: Any) -> None:
    page.locator("#live[data-live=yes]").wait_for()
    page.locator(".bubble").nth(3).wait_for()
    page.locator(".person").nth(3).wait_for(state="attached")


def _advised(page: Any) -> None:
    page.locator("#live[data-live=yes]").wait_for()
    page.locator("#fault-advice:not(:empty)").wait_for(state="attached")
