"""Compose: each row of a source → a message with number, text, key and SMS parts, or an invalid row with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.messages.arguments import check_columns, check_message, check_one_text
from airflow_provider_sms.messages.keys import can_be_key, key_column, message_keys
from airflow_provider_sms.messages.parts import count_parts
from airflow_provider_sms.messages.spool import SCHEMA
from airflow_provider_sms.messages.template import Fault, Template, TextColumn, too_large
from airflow_provider_sms.messages.texts import tidy, without_missing
from airflow_provider_sms.recipients.columns import (
    column_of,
    constant,
    field_of,
    first_reason,
    is_text,
    mask,
    strings,
    text,
    type_words,
    valid_rows,
)
from airflow_provider_sms.recipients.numbers import CleanDestinations, can_hold_numbers, clean_destinations
from airflow_provider_sms.recipients.regions import read_region

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EMPTY_TEXT = "the text is empty"


class Composer:
    """The arguments that turn rows into messages; holds no rows.

    :param message: template of the text, for example ``"Hi {first_name}"``; None means that the texts are in a column.
    :param content_column: column with the text; None means that the text is a template.
    :param destination_column: column with the number.
    :param default_region: ISO 3166 alpha-2 code of the country whose numbers are stored without country code, such
        as ``"ZA"``; None means that every number carries its country code.
    :param key_columns: columns that identify a message together with its destination; None means that its text does,
        and an empty list that the destination alone does.
    :raises InputError: both or neither of message and content_column are set, or the region is unknown.
    :raises TemplateError: the template is wrong or blank.
    """

    def __init__(
        self,
        message: str | None,
        content_column: str | None,
        destination_column: str = "destination",
        default_region: str | None = None,
        key_columns: Sequence[str] | None = None,
    ) -> None:
        check_one_text(message, content_column)
        check_message(message)
        check_columns(destination_column, content_column, key_columns)
        self._text: Template | TextColumn = TextColumn(str(content_column)) if message is None else Template(message)
        if default_region is not None:
            read_region(default_region)
        self._destination_column = destination_column
        self._default_region = default_region
        self._key_columns = None if key_columns is None else tuple(key_columns)

    @property
    def columns(self) -> list[str]:
        """The columns that are read, each once, the destination first."""
        return list(dict.fromkeys([self._destination_column, *self._text.columns, *(self._key_columns or ())]))

    @property
    def keyed_by_text(self) -> bool:
        """Whether the text identifies a message together with its destination."""
        return self._key_columns is None

    def check(self, schema: pa.Schema) -> None:
        """Check that all columns exist and have usable types, before any row is read.

        :raises ColumnError: names the column and the argument that names it.
        :raises TemplateError: a format does not fit its column.
        """
        if not schema.names:
            return  # an empty list of rows has no columns, and lacks none
        kind = field_of(schema, self._destination_column, "destination_column").type
        if not can_hold_numbers(kind):
            raise ColumnError(
                f"destination_column: {mask_numbers_in(self._destination_column)!r} is of type {type_words(kind)}; "
                "phone numbers are text or numbers"
            )
        self._text.check(schema)
        for name in self._key_columns or ():
            kind = field_of(schema, name, "key_columns").type
            if not can_be_key(kind):
                raise ColumnError(
                    f"key_columns: {mask_numbers_in(name)!r} is of type {type_words(kind)}, which cannot identify a "
                    "message"
                )

    def compose(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """Return the rows of a batch as :data:`~airflow_provider_sms.messages.spool.SCHEMA` has them.

        :param batch: rows with :attr:`columns`.
        :param first_row: index in the source of the batch's first row.
        :raises TemplateError: a format does not fit a value.
        """
        numbers = column_of(batch, self._destination_column, "destination_column")
        cleaned = clean_destinations(numbers, self._default_region)
        texts = self._text.render(batch, first_row)
        reasons, columns = self._faults(batch, cleaned, texts)
        destinations, key_values = cleaned.digits, [_key_values(batch, name) for name in self._key_columns or ()]
        valid = ~valid_rows(reasons)
        if valid.all():
            some_destinations, some_texts = destinations, texts
        else:
            chosen_rows = mask(valid)
            some_destinations, some_texts = destinations.filter(chosen_rows), texts.filter(chosen_rows)
            key_values = [column.filter(chosen_rows) for column in key_values]
            texts = pc.if_else(chosen_rows, texts, constant(None))
            destinations = _or_as_written(destinations, numbers)
        keys = message_keys(some_destinations, some_texts, None if self.keyed_by_text else key_values)
        parts = np.zeros(len(batch), np.int32)
        parts[valid] = list(map(count_parts, some_texts.to_pylist()))
        part_column = pa.Array.from_buffers(pa.int32(), len(batch), [None, pa.py_buffer(parts)])
        return pa.RecordBatch.from_arrays(
            [destinations, texts, key_column(keys, valid), part_column, columns, reasons], schema=SCHEMA
        )

    def _faults(
        self, batch: pa.RecordBatch, destinations: CleanDestinations, texts: pa.Array
    ) -> tuple[pa.Array, pa.Array]:
        """Return why each row cannot be texted, and the column at fault; null where it can."""
        reasons = destinations.reasons
        columns = pc.if_else(pc.is_null(reasons), constant(None), text(self._destination_column))
        if rules := [*self._text_rules(batch, texts), *self._key_rules(batch)]:
            reasons = pc.coalesce(reasons, first_reason(*((rule.rows, rule.reason) for rule in rules)))
            columns = pc.coalesce(columns, first_reason(*((rule.rows, rule.column) for rule in rules)))
        return reasons, columns

    def _text_rules(self, batch: pa.RecordBatch, texts: pa.Array) -> Iterator[Fault]:
        if texts.null_count:
            yield from self._text.faults(batch)
        blank = pc.equal(pc.utf8_trim_whitespace(texts), constant(""))
        if pc.any(blank).as_py():
            yield Fault(blank, self._text.columns[0], EMPTY_TEXT)

    def _key_rules(self, batch: pa.RecordBatch) -> Iterator[Fault]:
        for name in self._key_columns or ():
            yield from too_large(column_of(batch, name, "key_columns"), name)


def _key_values(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a key column, null for empty texts and for words such as NULL: another export may write none at all."""
    column = column_of(batch, name, "key_columns")
    return without_missing(tidy(column)) if is_text(column.type) else column


def _or_as_written(digits: pa.Array, numbers: pa.Array) -> pa.Array:
    """Return digits, and in place of null the number as it is written; null where there is none."""
    left = pc.is_null(digits)
    return pc.replace_with_mask(
        digits, left, strings([_as_text(number) for number in numbers.filter(left).to_pylist()])
    )


def _as_text(number: object) -> str | None:
    text = "" if number is None or number != number else str(number)  # noqa: PLR0124 - NaN is no number
    return text if text.strip() else None
