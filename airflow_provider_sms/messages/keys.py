"""Keys: the digests that tell messages, group texts and plans apart.

Any change here would text people a second time, or void an approval, so tests pin every digest.

**Message keys** identify a message within its campaign, and two rows with one key are duplicates. A key is 16 bytes,
the same in a new export of the same table: a digest of the destination and the text, or of the destination and the
values of ``key_columns``. The canonical form of a key value is text: numbers in decimal without trailing zeros (1, 1.0
and 1.00 are ``1``), dates and times as ISO 8601 without trailing zeros or a time of midnight, instants in UTC, binary
values in hexadecimal. Text is tidied, and counts as the number, date, time or boolean that it reads as; digits after
a leading zero are a code. So it does not matter in which width, unit, encoding or file format a column was stored. Null
is a value of its own, and NaN counts as null. The names of the columns play no part; their order does.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.messages.message import KEY_BYTES
from airflow_provider_sms.recipients.columns import by_value, constant, is_text, plain, tidy
from airflow_provider_sms.recipients.values import key_text, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

KEY_TYPE = pa.binary(KEY_BYTES)

_BY_TEXT = blake2b(digest_size=KEY_BYTES, person=b"sms: text")
_BY_COLUMNS = blake2b(digest_size=KEY_BYTES, person=b"sms: key columns")

_MAY_BE_VALUE = "^(?:-0|True|False|[-0-9].*[.eE:].*)$"
"""Besides these words, a text reads as a value if it begins like a number or a date and holds one of these signs."""
_END_OF_TIME = r"(?:(?: 00:00:00)?(?:\.0+)?|(\.[0-9]*[1-9])0+)(Z?)$"
"""A time of midnight and the zeros of a fraction, which do not count, as in :func:`key_text`."""


def message_keys(
    destinations: pa.Array, contents: pa.Array, key_values: Sequence[pa.Array] | None = None
) -> list[bytes]:
    """Return the key of each message: a digest of its destination and text, or of its destination and key values."""
    base, identity = _BY_TEXT, [contents]
    if key_values is not None:
        base, identity = _BY_COLUMNS, [_delimited(canonical(column)) for column in key_values]
    whole = pc.binary_join_element_wise(_delimited(destinations), *identity, constant(""))
    copy, keys = base.copy, []
    for each in whole.cast(pa.binary()).to_pylist():
        key = copy()
        key.update(each)
        keys.append(key.digest())
    return keys


def _delimited(texts: pa.Array) -> pa.Array:
    """Put each text's length before it, so that two columns cannot run together; null is a dash without a length."""
    lengths = pc.utf8_length(texts).cast(pa.string())
    return pc.coalesce(pc.binary_join_element_wise(lengths, texts, constant(":")), constant("-"))


def is_binary(kind: pa.DataType) -> bool:
    """Return whether a type is binary of any width, as UUIDs are."""
    kind, types = getattr(kind, "storage_type", kind), pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


def canonical(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a key column in its canonical form: strings, null for null and NaN."""
    column, types = plain(column), pa.types
    if is_binary(column.type):
        values = getattr(column, "storage", column)
        # Of 16 bytes are UUIDs, which other formats store as text; not all versions of pyarrow tell.
        return by_value(values, lambda each: str(UUID(bytes=each)) if values.type == pa.binary(16) else each.hex())
    if types.is_timestamp(column.type) and column.type.tz:
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))
    texts = tidy(column) if is_text(column.type) else column.cast(pa.string())
    if types.is_timestamp(column.type) or types.is_time(column.type):
        return pc.replace_substring_regex(texts, _END_OF_TIME, r"\1\2")
    if types.is_floating(column.type):
        texts = pc.if_else(pc.is_nan(column), constant(None), texts)
    rows = pc.match_substring_regex(texts, _MAY_BE_VALUE)
    if not pc.any(rows).as_py():
        return texts
    return pc.replace_with_mask(texts, rows, by_value(texts.filter(rows), key_text))


def key_bytes(column: pa.Array) -> memoryview:
    """Return the keys of a column without nulls, one after the other."""
    start = column.offset * KEY_BYTES
    return memoryview(column.buffers()[1])[start : start + len(column) * KEY_BYTES]


def key_list(keys: bytes | memoryview) -> list[bytes]:
    """Return keys, which are one after the other, as a list: twenty times as fast as Arrow makes one."""
    return np.frombuffer(keys, f"V{KEY_BYTES}").tolist()  # type: ignore[no-any-return]  # NumPy's


def key_halves(keys: bytes | memoryview) -> npt.NDArray[np.int64]:
    """Return both halves of each key as integers, a row each. The first is enough to tell the keys of a table apart."""
    return np.frombuffer(keys, np.int64).reshape(-1, 2)


def group_key(message: str, groups: Iterable[str]) -> bytes:
    """Return the key of a text to groups; the order of the groups and repeated names do not matter."""
    identity = json.dumps([sorted({plain_text(name) for name in groups}), message])
    return blake2b(identity.encode(), digest_size=KEY_BYTES, person=b"sms: groups").digest()


class Fingerprint:
    """A digest of message keys that depends on which keys there are and how often each occurs, but not on their order.

    The keys are digests, whose halves are added up as 64-bit numbers, so any change makes a random difference. Cut to
    48 bits, a table that has changed by accident passes for the same once in 280 million million times. It is no
    defence against a person who can choose the texts and searches for two tables that agree.
    """

    def __init__(self) -> None:
        self._sums = np.zeros(3, np.int64)
        """Of the first halves, of the second ones, and of the keys; what does not fit is dropped."""

    def add(self, keys: bytes | memoryview) -> None:
        """Add the keys of some messages, one after the other."""
        halves = key_halves(keys)
        self._sums += [*halves.sum(axis=0), len(halves)]

    def hexdigest(self) -> str:
        """Return the digest of all keys so far: 12 hexadecimal digits."""
        return blake2b(self._sums.tobytes(), digest_size=6, person=b"sms: keys").hexdigest()


def keys_with_texts(keys: bytes | memoryview, contents: Sequence[str]) -> bytes:
    """Return a digest of each key and its text, one after the other: with key columns, a key does not tell the text."""
    pairs = zip(range(0, len(keys), KEY_BYTES), contents, strict=True)
    return b"".join(
        blake2b(bytes(keys[start : start + KEY_BYTES]) + text.encode(), digest_size=KEY_BYTES).digest()
        for start, text in pairs
    )
