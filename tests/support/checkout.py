"""The shell blocks of the pages *Deploy* and *The ledger*, run in a folder that has the sources of a wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.pages import ROOT, blocks

PAGE, LEDGER = (ROOT / "docs" / name for name in ("deploy.md", "ledger.md"))
SHELL = [block.code for page in (PAGE, LEDGER) for block in blocks(page, "sh")]
HERE = Path(sys.executable).parent
"""The folder of this environment's commands."""


def block(words: str) -> str:
    """Return the only shell block of the pages that contains some words."""
    (found,) = (code for code in SHELL if words in code)
    return found


def bash(code: str, folder: Path, commands: Path = HERE, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a block in a folder, with an environment's Python as ``python``."""
    names = {**os.environ, **variables, "PATH": f"{commands}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-euc", code], cwd=folder, env=names, capture_output=True, text=True, check=False)


def build_wheel(folder: Path, **variables: str) -> None:
    """Copy what the build needs into a folder, and build the wheel there by the page's first block.

    :param variables: settings of pip.
    """
    for name in ("airflow_provider_sms", "constraints"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "constraints.txt"):
        shutil.copy(ROOT / name, folder / name)
    done = bash(block("pip wheel"), folder, **variables)
    assert done.returncode == 0, done.stderr
