"""The size of each room in lines, against its budget: ``make sizes`` prints the table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "airflow_provider_sms"
BUDGETS = {
    ("testing",): 350,
    ("cli",): 750,
    ("operators", "decorators", "sensors", "triggers", "notifications"): 1_500,
    ("plugins", "monitoring"): 1_250,
    ("execution",): 1_500,
    ("hooks",): 750,
    ("reporting",): 350,
    ("sending",): 1_700,
    ("planning",): 900,
    ("ledger",): 3_200,
    ("send_window",): 330,
    ("service",): 1_300,
    ("messages",): 1_000,
    ("recipients",): 1_800,
    ("",): 470,
    ("sandbox",): 850,
}
"""The lines of Python that the rooms of the package may have; the empty name is that of its root modules."""
TOTALS = {"package": 18_000, "tests": 32_000, "benchmarks, demo": 1_500, "pages": 3_600}


def sizes():
    """Return the rows of the table: name, lines today, budget."""
    rooms = {names: sum(map(_room, names)) for names in BUDGETS}
    rows = [("/ ".join(names) + "/" if names[0] else "root modules", rooms[names], BUDGETS[names]) for names in rooms]
    totals = {
        "package": sum(rooms.values()),
        "tests": _lines("tests/*.py"),
        "benchmarks, demo": _lines("benchmarks/*.py", "demo/*.py"),
        "pages": _lines("docs/*.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    }
    return [*rows, *((name, totals[name], TOTALS[name]) for name in TOTALS)]


def _room(name):
    return _lines(f"{PACKAGE}/{name}/*.py") if name else _lines(f":(glob){PACKAGE}/*.py")


def _lines(*patterns):
    """Return the lines of the files that git knows by these patterns; their ``*`` takes folders, too."""
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return sum(len(file.read_bytes().splitlines()) for file in files if file.exists())


if __name__ == "__main__":
    for name, lines, budget in sizes():
        over = f"  {lines - budget:,} too many" if lines > budget else ""
        sys.stdout.write(f"{name:<62} {lines:>7,} of {budget:>6,}{over}\n")
