"""How ``make docs`` builds the site: Sphinx over the same Markdown that the repository's web view shows."""

from __future__ import annotations

import os
import tempfile

# Airflow writes into its home when it is imported: that must not be the developer's own.
_home = tempfile.TemporaryDirectory(prefix="airflow-provider-sms-docs-")
os.environ["AIRFLOW_HOME"] = _home.name

from airflow_provider_sms import __version__  # noqa: E402  # Airflow's environment comes first

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
