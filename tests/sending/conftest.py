from __future__ import annotations

import pytest


@pytest.fixture
def run(sender):
    """Send messages as an attempt does, and return its send once it has ended."""

    def run(messages, ledger=None, **options):
        sending = sender(ledger, **options)
        sending.run(messages)
        return sending

    return run
