"""How ``make docs`` builds the site: Sphinx over the same Markdown that the repository's web view shows."""

from __future__ import annotations

import os
import tempfile
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

# Airflow writes into its home when it is imported: that must not be the developer's own.
_home = tempfile.TemporaryDirectory(prefix="airflow-provider-sms-docs-")
os.environ["AIRFLOW_HOME"] = _home.name

from airflow_provider_sms import __version__  # noqa: E402  # Airflow's environment comes first
from airflow_provider_sms.cli.definitions import get_cli_commands  # noqa: E402
from airflow_provider_sms.cli.main import PROGRAM, main  # noqa: E402

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

COMMANDS = Path(__file__).with_name("commands.md")

html_theme = "furo"
html_title = f"{project} {release}"
html_logo = html_favicon = "integration-logos/sms.svg"
html_copy_source = html_show_sourcelink = html_show_copyright = False


def write_commands(_app: Sphinx) -> None:
    """Write the reference of the commands, a page that only the site has: what each prints with ``--help``."""
    (group,) = get_cli_commands()
    sections = ["# Command reference\n"]
    for command in group.subcommands:
        with redirect_stdout(StringIO()) as printed, suppress(SystemExit):
            main([command.name, "--help"])
        sections.append(f"## {PROGRAM} {command.name}\n\n```text\n{printed.getvalue()}```\n")
    COMMANDS.write_text("\n".join(sections))


def setup(app: Sphinx) -> None:
    """Write the generated page before pages are looked for, and remove it after the build."""
    app.connect("builder-inited", write_commands)
    app.connect("build-finished", lambda *_: COMMANDS.unlink())
