"""The syntax of a message's template: ``"Hi {first_name}, you owe {amount:.2f}"`` → pieces of text, and fields.

Kept apart from :mod:`~airflow_provider_sms.messages.template`, which fills a template from Arrow columns: a DAG file is
loaded every few seconds, and the syntax of its templates is checked without Arrow.
"""

from __future__ import annotations

import re
from string import Formatter
from typing import Any, NamedTuple

from airflow_provider_sms.exceptions import TemplateError

USED_BY = "message"
_DIGITS = 4
"""The most digits of a number in a format, such as a width: wider texts are no text messages, and fill the memory."""
_TOO_WIDE = re.compile(rf"[0-9]{{{_DIGITS + 1}}}")


class Field(NamedTuple):
    """A place in the text for the value of a column."""

    column: str
    spec: str


def parse_template(text: Any) -> list[str | Field]:
    """Return the pieces of a template, in order.

    :param text: the template, in the syntax of :meth:`str.format`.
    :raises TemplateError: the syntax is wrong, a field names no column, or it has a conversion such as ``!r``.
    """
    if not isinstance(text, str):
        raise TemplateError(f"{USED_BY} must be a text, not {type(text).__name__}")
    pieces: list[str | Field] = []
    try:
        parsed = list(Formatter().parse(text))
    except ValueError as error:
        raise TemplateError(f"{USED_BY} is not a template: {error}. Write a literal brace twice") from None
    for literal, column, spec, conversion in parsed:
        if literal:
            pieces.append(literal)
        if column is None:
            continue
        if not column:
            raise TemplateError(f"{USED_BY}: a field has no name; write the name of a column in it: {{first_name}}")
        if conversion:
            raise TemplateError(f"{USED_BY}: {{{column}!{conversion}}} has a conversion; only a format is allowed")
        if spec and ("{" in spec or "}" in spec):
            raise TemplateError(f"{USED_BY}: the format of {{{column}}} has a field in it; only a fixed one is allowed")
        if spec and _TOO_WIDE.search(spec):
            raise TemplateError(f"{USED_BY}: the format of {{{column}}} has a number above {10**_DIGITS - 1}")
        pieces.append(Field(column, spec or ""))
    return pieces
