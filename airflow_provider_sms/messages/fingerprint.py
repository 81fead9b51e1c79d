"""Digests that stand for the messages of a table, or of a batch of it: other messages have others."""

from __future__ import annotations

from hashlib import blake2b, sha256
from typing import TYPE_CHECKING

import numpy as np

from airflow_provider_sms.messages.arrow import utf8

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sms.messages.prepared import PreparedBatch

BATCH_DIGEST_BYTES = 16
_KEY_BYTES = 16
_DIGEST_BYTES = 6
_MODULUS = 1 << 8 * _KEY_BYTES


class Fingerprint:
    """A digest of keys that depends on which they are and how many times each, but not on their order.

    The keys are added up as 128-bit numbers. They are digests themselves (BLAKE2b), so each is as good as random, and
    so is the difference that any change makes to the sum: two tables have one sum by accident as rarely as two
    messages have one key. What is shown is a digest of the sum and the count, cut to 48 bits: a table that has changed
    by accident passes for the same once in 280 million million times. It is no defence against somebody who may choose
    the texts and looks for two tables that agree.
    """

    def __init__(self) -> None:
        self._sum = 0
        self._count = 0

    def add(self, keys: Sequence[bytes]) -> None:
        """Take in the keys of some messages, 16 bytes each."""
        # Quarters, so that no column's sum overflows in fewer than 2**32 keys.
        quarters = np.frombuffer(b"".join(keys), "<u4").reshape(-1, 4).sum(axis=0, dtype=np.uint64).tolist()
        self._sum = (self._sum + sum(quarter << 32 * place for place, quarter in enumerate(quarters))) % _MODULUS
        self._count += len(keys)

    def hexdigest(self) -> str:
        """Give the digest of all keys so far: 12 hexadecimal digits."""
        whole = self._sum.to_bytes(_KEY_BYTES, "little") + self._count.to_bytes(8, "little")
        return blake2b(whole, digest_size=_DIGEST_BYTES, person=b"sms: keys").hexdigest()


def batch_digest(prepared: PreparedBatch) -> bytes:
    """Return a digest of the messages of a batch: their keys, numbers, texts and rows, in their order.

    The text is part of it, since with ``key_columns`` a key says nothing of the text. The rows are part of it, so that
    the rows that cannot be texted must be the same ones, too.

    :returns: 16 bytes.
    """
    # Processors have instructions for SHA-256: texts are long, and all of them are digested twice.
    whole = sha256()
    for column in (prepared.destination_column, prepared.content_column):
        ends, values = utf8(column)
        whole.update(ends.tobytes())
        whole.update(values.data)
    whole.update(prepared.num_rows.to_bytes(8, "little"))
    whole.update(prepared.row_column.tobytes())
    whole.update(b"".join(prepared.keys))
    return whole.digest()[:BATCH_DIGEST_BYTES]
