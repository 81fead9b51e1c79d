"""A picture to take, and taking it."""

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
    """A picture, which is taken in light, in dark, or in both.

    :param name: beginning of the file's name; the colours follow.
    :param url: the page.
    :param width: pixels of the window; default 1400.
    :param height: pixels of the window; default 900.
    :param scale: pixels of the picture for each; default 1.
    :param expected: patterns of problems that are meant to occur, as of :meth:`support.browser.Browser.page`.
    :param schemes: in which colours it is taken; default both.
    :param prepare: what is done with Playwright's page before; it returns once all is there that is to be seen.
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
    """Take a picture in each of its colours, and give each file.

    :param browser: what opens the page.
    :param shot: the picture.
    :param folder: where to.
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
