"""The pages of reference that ``make docs`` writes."""

from __future__ import annotations

import runpy

from support.pages import ROOT


def page(name):
    """Return the text of a generated page of ``docs/reference.py``."""
    return runpy.run_path(str(ROOT / "docs" / "reference.py"))["PAGES"][name]()
