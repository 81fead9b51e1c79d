"""How ``make docs`` builds the site: Sphinx over the same Markdown that the repository's web view shows."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

# Airflow writes into its home when it is imported: that must not be the developer's own.
_home = tempfile.TemporaryDirectory(prefix="airflow-provider-sms-docs-")
os.environ["AIRFLOW_HOME"] = _home.name

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from reference import PAGES  # noqa: E402  # Airflow's environment comes first

from airflow_provider_sms import __version__  # noqa: E402

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "airflow-provider-sms"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]

# The source is the whole repository, so that a link from page to page is the same one here and there.
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md"]
exclude_patterns = [".*", "[!d]*/**", "demo/**", "dags/**", "dist/**", "docs/_build/**"]

myst_heading_anchors = 4
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = f"{project} {release}"
html_logo = html_favicon = "integration-logos/sms.svg"
html_copy_source = html_show_sourcelink = html_show_copyright = False


def setup(app: Sphinx) -> None:
    """Write the generated pages before pages are looked for, and remove them after the build."""
    paths = {HERE / f"{name}.md": text for name, text in PAGES.items()}
    app.connect("builder-inited", lambda _: [path.write_text(text()) for path, text in paths.items()])
    app.connect("build-finished", lambda *_: [path.unlink() for path in paths])
