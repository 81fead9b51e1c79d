"""A screenshot, and the function that takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.browser import Browser

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


def _as_it_is(_page: Any) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Shot:
    """A screenshot in light colours, in dark ones, or in both.

    :param name: beginning of the file's name, before the colours.
    :param url: URL of the page.
    :param width: width of the window in pixels; default 1400.
    :param height: height of the window in pixels; default 900.
    :param scale: pixels of the image per pixel of the window; default 1.
    :param expected: patterns of expected errors, as of :meth:`support.browser.Browser.page`.
    :param schemes: colours; default both.
    :param prepare: function that prepares Playwright's page, and returns once everything is visible.
    """

    name: str
    url: str
    width: int = 1400
    height: int = 900
    scale: float = 1
    expected: tuple[str, ...] = ()
    schemes: tuple[Scheme, ...] = SCHEMES
    prepare: Callable[[Any], None] = _as_it_is


def take(browser: Browser, shot: Shot, folder: Path) -> Iterator[Path]:
    """Take a screenshot in each of its colours, and yield each file.

    :param browser: the browser.
    :param shot: the screenshot.
    :param folder: folder for the files.
    """
    for scheme in shot.schemes:
        path = folder / f"{shot.name}-{scheme}.png"
        with browser.page(
            shot.url,
            color_scheme=scheme,
            width=shot.width,
            height=shot.height,
            scale=shot.scale,
            expected=shot.expected,
        ) as page:
            shot.prepare(page)
            page.screenshot(path=str(path), animations="disabled", caret="hide")
        yield path
