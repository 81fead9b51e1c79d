"""``python -m support.faults``, from the repository's root with ``PYTHONPATH=tests:.``."""

from __future__ import annotations

import signal
import sys

from support.faults.table import main

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the servers that it started end with it
    sys.exit(main())
