"""The pictures of the documentation can be taken, by the command that took them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screenshots.shots import SCHEMES, take

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("name", ["inbox"])
def test_the_pictures_are_those_of_the_documentation(browser, tmp_path, name):
    """Each picture shows a page that does nothing wrong, and the documentation's folder has these and no other."""
    from support.screenshots.__main__ import SETS

    with SETS[name]() as shots:
        for shot in shots:
            taken = next(take(browser, shot, tmp_path))
            assert taken.read_bytes().startswith(PNG)
    expected = {f"{shot.name}-{scheme}.png" for shot in shots for scheme in SCHEMES}
    assert expected == {path.name for path in IMAGES.glob(f"{name}-*.png")}
