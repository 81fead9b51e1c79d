"""Digests of what the pictures show, in a file beside them: a picture that is older than its page is noticed."""

from __future__ import annotations

import hashlib
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILE = "digests.txt"
SCRIPTS = "tests/support/screenshots"
DRAWN = {
    "sandbox": (f"{SCRIPTS}/sandbox.py", "airflow_provider_sms/sandbox/static"),
    "campaigns": (
        f"{SCRIPTS}/campaigns.py",
        "airflow_provider_sms/monitoring/reasons.py",
        "airflow_provider_sms/monitoring/models.py",
        "airflow_provider_sms/plugins/templates",
        "airflow_provider_sms/plugins/static",
    ),
}
"""Set of pictures → files and folders of the data, of the words and of the page that it shows."""


def digest(name: str, root: Path = ROOT) -> str:
    """Return a digest of what a set of pictures shows.

    :param root: folder of the checkout.
    """
    found = hashlib.sha256()
    for place in DRAWN[name]:
        path = root / place
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            if file.is_file():
                found.update(f"{file.relative_to(root).as_posix()}\0{file.stat().st_size}\0".encode())
                found.update(file.read_bytes())
    return found.hexdigest()


def read(folder: Path) -> dict[str, str]:
    """Return the digest of each set of pictures as it was when they were taken.

    :param folder: of the pictures.
    """
    path = folder / FILE
    return dict(line.split() for line in path.read_text().splitlines()) if path.exists() else {}


def write(folder: Path, name: str) -> None:
    """Note that a set of pictures shows what there is now.

    :param folder: of the pictures.
    """
    known = {**read(folder), name: digest(name)}
    (folder / FILE).write_text("".join(f"{each} {known[each]}\n" for each in sorted(known)))
