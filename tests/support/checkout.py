"""The shell blocks of the pages *Deploy* and *The ledger*, run in a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.pages import ROOT, blocks

PAGE, LEDGER = (ROOT / "docs" / name for name in ("deploy.md", "ledger.md"))
SHELL = [block.code for page in (PAGE, LEDGER) for block in blocks(page, "sh")]
HERE = Path(sys.executable).parent
"""The folder of this environment's commands."""


def block(words):
    """Return the only shell block of the pages that contains some words."""
    (found,) = (code for code in SHELL if words in code)
    return found


def bash(code, folder, commands=HERE, **variables):
    """Run a block in a folder, with an environment's Python as ``python``."""
    names = {**os.environ, **variables, "PATH": f"{commands}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-euc", code], cwd=folder, env=names, capture_output=True, text=True, check=False)
