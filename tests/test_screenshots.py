"""The pictures of the documentation can be taken, by the command that took them, and show the pages as they are."""

from __future__ import annotations

import random
import re
import shutil
from types import SimpleNamespace

import pytest
from support.campaign_site import CampaignSite
from support.pages import ROOT, dags
from support.screenshots import campaigns, digests, sandbox
from support.screenshots.shots import take

IMAGES = ROOT / "docs" / "images"
PNG = b"\x89PNG\r\n\x1a\n"


def test_the_pictures_of_the_sandbox_are_those_of_the_documentation(browser, tmp_path):
    """Each picture shows a page that does nothing wrong, and the documentation's folder has these and no other."""
    with sandbox.shots() as shots:
        for shot in shots:
            taken = next(take(browser, shot, tmp_path))
            assert taken.read_bytes().startswith(PNG)
    assert files_of(shots) == {path.name for path in IMAGES.glob("sandbox-*.png")}


def test_the_pictures_of_the_campaigns_are_those_of_the_documentation():
    """Each one that the command takes is there, and a page shows it; taking them needs an Airflow that sends."""
    shots = campaigns.pictures(CampaignSite(SimpleNamespace(url="http://127.0.0.1"), ledger=None))
    shown = "".join(path.read_text() for path in [*IMAGES.parent.glob("*.md"), IMAGES.parents[1] / "README.md"])
    assert files_of(shots) == {path.name for path in IMAGES.glob("campaigns-*.png")}
    assert [name for name in files_of(shots) if f"images/{name})" not in shown] == []


def test_the_pictures_are_as_old_as_what_they_show():
    """Data, words and pages are those of which they were taken; if not, ``make screenshots`` takes them anew."""
    assert digests.read(IMAGES) == {name: digests.digest(name) for name in digests.DRAWN}


@pytest.mark.parametrize(
    ("changed", "older"),
    [
        ("tests/support/screenshots/sandbox.py", ["sandbox"]),
        ("tests/support/screenshots/campaigns.py", ["campaigns"]),
        ("airflow_provider_sms/plugins/templates/campaign.html", ["campaigns"]),
        ("airflow_provider_sms/sandbox/static/page.css", ["sandbox"]),
    ],
)
def test_a_change_of_what_is_shown_makes_pictures_old(tmp_path, changed, older):
    """A digest changes with each file that its pictures show, and with no other."""
    for place in {place for places in digests.DRAWN.values() for place in places}:
        copy = shutil.copytree if (ROOT / place).is_dir() else shutil.copy
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / place, tmp_path / place)
    with (tmp_path / changed).open("a") as file:
        file.write(" ")
    names = digests.DRAWN
    assert [name for name in names if digests.digest(name, tmp_path) != digests.digest(name)] == older


def test_the_command_notes_what_the_pictures_show(tmp_path):
    """Of the sets that it takes, and leaves the notes on others as they are."""
    (tmp_path / digests.FILE).write_text("campaigns old\n")
    digests.write(tmp_path, "sandbox")
    assert digests.read(tmp_path) == {"campaigns": "old", "sandbox": digests.digest("sandbox")}


def test_the_pictures_show_the_campaign_of_the_readme(tmp_path):
    """A reader of the README meets its campaign again, with its text."""
    (dag,) = dags(ROOT / "README.md")
    shown = campaigns._dags(tmp_path)["remind_customers"]
    for name in ("message", "campaign"):
        assert re.findall(rf'^ +{name}="(.*?)",', dag, re.MULTILINE) == [shown[name]]
    assert f"key_columns={shown['key_columns']}".replace("'", '"') in dag
    pattern = re.sub(r"\\{.*?\\}", ".+", re.escape(shown["message"]))
    assert re.fullmatch(pattern, sandbox.reminder(random.Random(sandbox.SEED)))


def files_of(shots):
    return {f"{shot.name}-{scheme}.png" for shot in shots for scheme in shot.schemes}
