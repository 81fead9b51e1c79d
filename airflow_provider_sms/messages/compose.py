"""Compose: each row of a source → a message with number, text, key and SMS parts, or an invalid row with its reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.messages.keys import KEY_TYPE, is_binary, message_keys
from airflow_provider_sms.messages.parts import BASIC, SEPTETS_PART, SEPTETS_SINGLE, count_parts, is_gsm
from airflow_provider_sms.messages.spool import SCHEMA
from airflow_provider_sms.messages.template import Template, TextColumn, is_value, too_large, without_too_large
from airflow_provider_sms.recipients.columns import (
    chosen,
    column_of,
    constant,
    field_of,
    first_reason,
    integers,
    is_text,
    mask,
    strings,
    tidy,
    value_type,
    without_missing,
    wrong_type,
)
from airflow_provider_sms.recipients.numbers import clean_destinations, require_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from airflow_provider_sms.messages.template import Fault


class Composer:
    """The arguments that turn rows into messages, as :class:`.BulkOptions` has checked them; holds no rows.

    :param key_columns: columns that identify a message together with its destination; None means that its text does,
        and an empty list that the destination alone does.
    """

    def __init__(
        self,
        message: str | None,
        content_column: str | None,
        destination_column: str = "destination",
        default_region: str | None = None,
        key_columns: Sequence[str] | None = None,
    ) -> None:
        self._text: Template | TextColumn = TextColumn(str(content_column)) if message is None else Template(message)
        self._destination_column = destination_column
        self._default_region = default_region
        self._key_columns = tuple(key_columns or ())
        self.keyed_by_text = key_columns is None
        self.columns = list(dict.fromkeys([destination_column, *self._text.columns, *self._key_columns]))
        """The columns that are read, each once, the destination first."""

    def check(self, schema: pa.Schema) -> None:
        """Check that all columns exist and have usable types, before a row of theirs is read."""
        require_numbers(field_of(schema, self._destination_column, "destination_column"), "destination_column")
        self._text.check(schema)
        for name in self._key_columns:
            column = field_of(schema, name, "key_columns")
            if not (is_value(value_type(column.type)) or is_binary(value_type(column.type))):
                raise wrong_type(column, "key_columns", "which cannot identify a message")

    def compose(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch as :data:`~airflow_provider_sms.messages.spool.SCHEMA` has them."""
        numbers = column_of(batch, self._destination_column, "destination_column")
        cleaned, texts = clean_destinations(numbers, self._default_region), self._text.render(batch)
        reasons = cleaned.reasons
        columns = pc.if_else(pc.is_null(reasons), constant(None), constant(self._destination_column))
        if faults := list(self._faults(batch, texts)):
            reasons = pc.coalesce(reasons, first_reason(*((rows, reason) for rows, _, reason in faults)))
            columns = pc.coalesce(columns, first_reason(*((rows, column) for rows, column, _ in faults)))
        valid = mask(chosen(pc.is_null(reasons)))
        texts = pc.if_else(valid, texts, constant(None))
        # Invalid rows are digested and counted, too, as if they had an empty text: a case less.
        contents = pc.fill_null(texts, constant(""))
        parts, are_ucs2 = _parts_of(contents)
        keys = message_keys(
            pc.fill_null(cleaned.digits, constant("")),
            contents,
            None if self.keyed_by_text else [_key_values(batch, name) for name in self._key_columns],
        )
        return pa.RecordBatch.from_arrays(
            [
                _or_as_written(cleaned.digits, numbers),
                texts,
                pa.Array.from_buffers(KEY_TYPE, len(batch), [valid.buffers()[1], pa.py_buffer(b"".join(keys))]),
                pa.Array.from_buffers(pa.int32(), len(batch), [None, pa.py_buffer(parts)]),
                mask(are_ucs2),
                columns,
                reasons,
            ],
            schema=SCHEMA,
        )

    def _faults(self, batch: pa.RecordBatch, texts: pa.Array) -> Iterator[Fault]:
        blank = pc.equal(pc.utf8_trim_whitespace(texts), constant(""))
        if pc.any(blank).as_py():
            yield blank, self._text.columns[0], "the text is empty"
        if texts.null_count:
            yield from self._text.faults(batch)
        for name in self._key_columns:
            if (found := too_large(column_of(batch, name, "key_columns"))) is not None:
                yield found[0], name, found[1]


def _parts_of(texts: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Count the SMS parts of texts, and tell which are in UCS-2; one by one would double a dry run."""
    lengths = integers(pc.utf8_length(texts))
    parts = np.where(lengths <= SEPTETS_SINGLE, 1, -(-lengths // SEPTETS_PART)).astype(np.int32)
    rows = ~chosen(pc.match_substring_regex(texts, f"^[{re.escape(BASIC)}]*$"))
    others, are_ucs2 = texts.filter(mask(rows)).to_pylist(), np.zeros(len(texts), np.bool_)
    parts[rows], are_ucs2[rows] = [count_parts(text) for text in others], [not is_gsm(text) for text in others]
    return parts, are_ucs2


def _key_values(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a key column, null for empty texts and for words such as NULL: another export may write none at all."""
    column = without_too_large(column_of(batch, name, "key_columns"))
    return without_missing(tidy(column)) if is_text(column.type) else column


def _or_as_written(digits: pa.Array, numbers: pa.Array) -> pa.Array:
    """Return digits, and in place of null the number as it is written; null where there is none."""
    left = pc.is_null(digits)
    values = numbers.filter(left).to_pylist()
    written = ["" if each is None or each != each else str(each) for each in values]  # noqa: PLR0124 - NaN is no number
    return pc.replace_with_mask(digits, left, strings([text if text.strip() else None for text in written]))
