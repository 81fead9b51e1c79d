"""The command ``python -m support.screenshots``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from support.browser import NoBrowserError, running_browser
from support.screenshots import campaigns, digests, sandbox
from support.screenshots.shots import take

ROOT = Path(__file__).parents[3]
SETS = {"sandbox": sandbox.shots, "campaigns": campaigns.shots}
"""Sets of screenshots: each starts the servers that it needs, and yields its shots."""


def main() -> int:
    """Take the screenshots, and print each file's path.

    :returns: exit status: 0 when all were taken, 1 without a browser.
    """
    parser = argparse.ArgumentParser(prog="python -m support.screenshots", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS), help="sets to take")
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "images", help="folder (default: docs/images)")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    try:
        with running_browser() as browser:
            for name in given.only:
                with SETS[name]() as shots:
                    for shot in shots:
                        for path in take(browser, shot, given.into):
                            print(path, f"{path.stat().st_size // 1024} KiB")  # noqa: T201 - a command's output
                digests.write(given.into, name)
    except NoBrowserError as missing:
        print(missing, file=sys.stderr)  # noqa: T201 - a command's error
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
