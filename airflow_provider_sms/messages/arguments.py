"""The arguments that say what is texted, and to which groups, as far as they can be checked without a row.

They are checked when a DAG is loaded, every few seconds and hence without Arrow, and again once templates are rendered,
before a table is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from string import Formatter
from typing import Any, NamedTuple

from airflow_provider_sms.exceptions import InputError, TemplateError
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.recipients.values import is_missing, plain_text, tidy_text

_RENDERED_LIST = re.compile(r"""[\[({]\s*['"].*['"]\s*,?\s*[\])}]|\[\]|\(\)""", re.DOTALL)
"""A list of names as a template renders it to text. A name in brackets, such as ``[VIP]``, has no quotes there."""


class Field(NamedTuple):
    """A place in the text for the value of a column."""

    column: str
    spec: str


def parse_template(text: Any) -> list[str | Field]:
    """Return the pieces of a template, in order."""
    if not isinstance(text, str):
        raise TemplateError(f"message must be a text, not {type(text).__name__}")
    pieces: list[str | Field] = []
    try:
        parsed = list(Formatter().parse(text))
    except ValueError as error:
        raise TemplateError(f"message is not a template: {error}. Write a literal brace twice") from None
    for literal, column, spec, conversion in parsed:
        if literal:
            pieces.append(literal)
        if column is None:
            continue
        if not column:
            raise TemplateError("message: a field has no name; write the name of a column in it: {first_name}")
        if conversion:
            raise TemplateError(f"message: {{{column}!{conversion}}} has a conversion; only a format is allowed")
        pieces.append(Field(column, spec or ""))
    return pieces


def check_message(message: Any) -> list[str | Field]:
    """Return the pieces of a message, and refuse one that could not be written for any row."""
    pieces = parse_template(message)
    try:
        message.encode()
    except UnicodeEncodeError as error:
        raise TemplateError(
            f"message has half a character (U+{ord(message[error.start]):04X}) at position {error.start + 1}, which "
            "cannot be sent: was it cut from a longer text?"
        ) from None
    text = tidy_text(message).strip()
    if not text:
        raise TemplateError("message is empty")
    if is_missing(text):
        raise TemplateError(f"message is {message!r}: was there no value to render it from?")
    return pieces


def check_columns(destination_column: Any, content_column: Any, key_columns: Any) -> None:
    """Refuse values that cannot be the names of columns."""
    if not isinstance(destination_column, str) or not destination_column:
        raise InputError("destination_column must be the name of a column, such as 'destination'")
    if content_column is not None and not isinstance(content_column, str):
        raise InputError("content_column must be the name of a column, or None")
    if isinstance(key_columns, str):
        raise InputError(f"key_columns is a list of column names: write [{key_columns!r}]")
    keys = [] if key_columns is None else key_columns
    # Not just any iterable: the order of a set differs between processes, and an iterator is empty the second time.
    if not isinstance(keys, (list, tuple)) or not all(isinstance(name, str) for name in keys):
        raise InputError("key_columns is a list of column names, such as ['first_name']")
    if len(set(keys)) < len(keys):
        raise InputError("key_columns names a column twice")
    named = [("destination_column", destination_column), ("content_column", content_column or "")]
    for argument, name in [*named, *(("key_columns", key) for key in keys)]:
        if "{{" in name:
            raise InputError(f"{argument} takes no template: write the name of the column itself")


def read_groups(given: Any) -> list[str]:
    """Return the names of groups as they are written, each once, and refuse any that could miss its group."""
    groups = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
    if not groups or not all(isinstance(name, str) and name.strip() for name in groups):
        raise InputError("groups must be at least one group's name, and no name may be empty")
    known: dict[str, tuple[str, str]] = {}
    for name in groups:
        spelt = plain_text(name)
        if is_missing(spelt):
            raise InputError(f"groups: a name is {name!r}: was there no value to render it from?")
        if _RENDERED_LIST.fullmatch(spelt.strip()):
            raise InputError(
                "groups: a list was rendered into the text of one name. Pass the upstream task's output itself "
                "(groups=task.output), or set render_template_as_native_obj=True on the DAG"
            )
        if spelt != spelt.strip():
            given, wanted = (repr(mask_numbers_in(each)) for each in (name, spelt.strip()))
            raise InputError(f"groups: there are blanks around the name {given}; write {wanted}")
        other, _ = known.setdefault(spelt.casefold(), (spelt, name))
        if other != spelt:
            both = " and ".join(repr(mask_numbers_in(each)) for each in (other, spelt))
            raise InputError(
                f"groups: {both} differ in capitals alone. If they are one group at the service, its people would get "
                "the text twice. Name the group once, as the service does"
            )
    return [name for _, name in known.values()]
