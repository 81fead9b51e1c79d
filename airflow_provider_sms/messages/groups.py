"""What makes a text to groups the same message again."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def group_key(message: str, groups: Iterable[str]) -> bytes:
    """Digest a text and the groups that it goes to; their order and repeats do not matter.

    :returns: a BLAKE2b digest of 16 bytes.
    """
    identity = json.dumps([sorted(set(groups)), message])
    return blake2b(identity.encode(), digest_size=16, person=b"sms: groups").digest()
