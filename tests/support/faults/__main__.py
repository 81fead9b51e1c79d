"""``python -m support.faults``, from the repository's root with ``PYTHONPATH=tests:.``."""

from __future__ import annotations

import sys

from support.faults.table import main

if __name__ == "__main__":
    sys.exit(main())
