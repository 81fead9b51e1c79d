"""The pictures of the documentation can be taken, by the command that took them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from support.campaign_site import CampaignSite
from support.screenshots import campaigns
from support.screenshots.shots import take

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
    assert files_of(shots) == {path.name for path in IMAGES.glob(f"{name}-*.png")}


def test_the_pictures_of_the_campaigns_are_those_of_the_documentation():
    """Each one that the command takes is there, and a page shows it; taking them needs an Airflow that sends."""
    shots = campaigns.pictures(CampaignSite(SimpleNamespace(url="http://127.0.0.1"), ledger=None))
    shown = "".join(path.read_text() for path in [*IMAGES.parent.glob("*.md"), IMAGES.parents[1] / "README.md"])
    assert files_of(shots) == {path.name for path in IMAGES.glob("campaigns-*.png")}
    assert [name for name in files_of(shots) if f"images/{name})" not in shown] == []


def files_of(shots):
    return {f"{shot.name}-{scheme}.png" for shot in shots for scheme in shot.schemes}
