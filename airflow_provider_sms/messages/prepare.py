"""Preparation: rows of a source → messages with texts, numbers and keys; invalid rows, with the reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.masking import mask_number, mask_numbers_in
from airflow_provider_sms.messages.arguments import check_columns, check_message, check_one_text
from airflow_provider_sms.messages.keys import can_be_key, message_keys
from airflow_provider_sms.messages.parts import (
    BASIC,
    EXTENSION,
    SEPTETS_PART,
    SEPTETS_SINGLE,
    UNITS_PART,
    UNITS_SINGLE,
    count_parts,
)
from airflow_provider_sms.messages.prepared import PreparedBatch, RejectedRow
from airflow_provider_sms.messages.template import Fault, Template, TextColumn, too_large
from airflow_provider_sms.messages.texts import tidy, without_missing
from airflow_provider_sms.recipients.columns import (
    chosen,
    column_of,
    constant,
    field_of,
    first_reason,
    integers,
    is_text,
    mask,
    text,
    type_words,
    valid_rows,
)
from airflow_provider_sms.recipients.numbers import CleanDestinations, can_hold_numbers, clean_destinations
from airflow_provider_sms.recipients.regions import read_region

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

EMPTY_TEXT = "the text is empty"

_BASIC = f"^[{re.escape(BASIC)}]*$"
_ONE_UNIT_EACH = r"^[\x{0}-\x{ffff}]*$"
IN_SEPTETS = f"^[{re.escape(BASIC + EXTENSION)}]*$"
"""Texts that are not sent in UCS-2."""


class _Rejections(NamedTuple):
    """Why each row is rejected, and the column at fault; null where the row is valid."""

    reasons: pa.Array
    columns: pa.Array


class Preparation:
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

    def prepare(self, batch: pa.RecordBatch, first_row: int) -> PreparedBatch:
        """Return the messages of a batch, and its rows that cannot be texted.

        :param batch: rows with :attr:`columns`.
        :param first_row: index in the source of the batch's first row.
        :raises TemplateError: a format does not fit a value.
        """
        destinations = self._clean(batch)
        texts = self._text.render(batch, first_row)
        rejections = self._rejections(batch, destinations, texts)
        rows = np.arange(first_row, first_row + len(batch))
        digits = destinations.digits
        key_values = None
        if self._key_columns is not None:
            key_values = [_key_values(batch, name) for name in self._key_columns]
        if rejections is not None:
            valid = pc.is_null(rejections.reasons)
            rows = rows[~valid_rows(rejections.reasons)]
            digits, texts = digits.filter(valid), texts.filter(valid)
            key_values = key_values and [column.filter(valid) for column in key_values]
        return PreparedBatch(
            num_rows=len(batch),
            row_column=rows,
            destination_column=digits,
            content_column=texts,
            part_column=parts_of(texts),
            keys=message_keys(digits, texts, key_values),
            rejected=self._rejected(batch, first_row, rejections),
            rejected_numbers=self._rejected_numbers(batch, destinations, rejections),
        )

    def _clean(self, batch: pa.RecordBatch) -> CleanDestinations:
        numbers = column_of(batch, self._destination_column, "destination_column")
        return clean_destinations(numbers, self._default_region)

    def _rejections(
        self, batch: pa.RecordBatch, destinations: CleanDestinations, texts: pa.Array
    ) -> _Rejections | None:
        """Find the rows that cannot be texted; None means that every row can."""
        reasons = destinations.reasons
        rules = [*self._text_rules(batch, texts), *self._key_rules(batch)]
        if not rules and reasons.null_count == len(batch):
            return None
        columns = pc.if_else(pc.is_null(reasons), constant(None), text(self._destination_column))
        if rules:
            reasons = pc.coalesce(reasons, first_reason(*((rule.rows, rule.reason) for rule in rules)))
            columns = pc.coalesce(columns, first_reason(*((rule.rows, rule.column) for rule in rules)))
        return _Rejections(reasons, columns)

    def _text_rules(self, batch: pa.RecordBatch, texts: pa.Array) -> Iterator[Fault]:
        if texts.null_count:
            yield from self._text.faults(batch)
        blank = pc.equal(pc.utf8_trim_whitespace(texts), constant(""))
        if pc.any(blank).as_py():
            yield Fault(blank, self._text.columns[0], EMPTY_TEXT)

    def _key_rules(self, batch: pa.RecordBatch) -> Iterator[Fault]:
        for name in self._key_columns or ():
            yield from too_large(column_of(batch, name, "key_columns"), name)

    def _rejected(self, batch: pa.RecordBatch, first_row: int, rejections: _Rejections | None) -> list[RejectedRow]:
        if rejections is None:
            return []
        reasons, columns = rejections
        invalid = pc.is_valid(reasons)
        numbers = column_of(batch, self._destination_column, "destination_column").filter(invalid).to_pylist()
        return [
            RejectedRow(
                row=first_row + row,
                column=column,
                reason=reason,
                value=_masked(number) if column == self._destination_column else "",
            )
            for row, column, reason, number in zip(
                pc.indices_nonzero(invalid).to_pylist(),
                columns.filter(invalid).to_pylist(),
                reasons.filter(invalid).to_pylist(),
                numbers,
                strict=True,
            )
        ]

    def _rejected_numbers(
        self, batch: pa.RecordBatch, destinations: CleanDestinations, rejections: _Rejections | None
    ) -> list[str | None]:
        if rejections is None:
            return []
        invalid = pc.is_valid(rejections.reasons)
        written = column_of(batch, self._destination_column, "destination_column").filter(invalid).to_pylist()
        return [
            _as_text(number) if digits is None else digits
            for digits, number in zip(destinations.digits.filter(invalid).to_pylist(), written, strict=True)
        ]


def parts_of(texts: pa.Array) -> npt.NDArray[np.int32]:
    """Return the SMS parts of each text of a column without nulls."""
    lengths = integers(pc.utf8_length(texts))
    basic, ucs2 = chosen(pc.match_substring_regex(texts, _BASIC)), ~chosen(pc.match_substring_regex(texts, IN_SEPTETS))
    ucs2 &= chosen(pc.match_substring_regex(texts, _ONE_UNIT_EACH))
    parts = np.where(
        basic,
        np.where(lengths <= SEPTETS_SINGLE, 1, -(-lengths // SEPTETS_PART)),
        np.where(lengths <= UNITS_SINGLE, 1, -(-lengths // UNITS_PART)),
    ).astype(np.int32)
    others = ~(basic | ucs2)  # characters of two septets or units cannot be cut anywhere
    parts[others] = [count_parts(text) for text in texts.filter(mask(others)).to_pylist()]
    return parts


def _key_values(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a key column, null for empty texts and for words such as NULL: another export may write none at all."""
    column = column_of(batch, name, "key_columns")
    return without_missing(tidy(column)) if is_text(column.type) else column


def _masked(number: object) -> str:
    text = _as_text(number)
    return mask_number(text) if text else ""


def _as_text(number: object) -> str | None:
    text = "" if number is None or number != number else str(number)  # noqa: PLR0124 - NaN is no number
    return text if text.strip() else None
