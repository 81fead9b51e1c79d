"""The arguments that turn rows into messages, as far as they can be checked without a row.

They are checked when a DAG is loaded, hence without Arrow, and again once templates are rendered, before a table is
read.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_sms.exceptions import InputError, TemplateError
from airflow_provider_sms.messages.plain_text import tidy_text
from airflow_provider_sms.messages.template_syntax import parse_template
from airflow_provider_sms.recipients.values import is_missing


def check_message(message: Any) -> None:
    """Refuse a message that could not be written for any row.

    :param message: the template; None means that the texts are in a column.
    :raises TemplateError: it is not a valid template, is blank, or is a word for a missing value.
    """
    if message is None:
        return
    parse_template(message)
    check_characters(message)
    text = tidy_text(message)
    if not text.strip():
        raise TemplateError("message is empty")
    if is_missing(text.strip()):
        raise TemplateError(f"message is {message!r}: was there no value to render it from?")


def check_characters(message: str) -> None:
    """Refuse a text that contains half a character, as one cut in the middle of a character does.

    :raises TemplateError: names the half and its position, counted from 1.
    """
    try:
        message.encode()
    except UnicodeEncodeError as error:
        raise TemplateError(
            f"message has half a character (U+{ord(message[error.start]):04X}) at position {error.start + 1}, which "
            "cannot be sent: was it cut from a longer text?"
        ) from None


def check_one_text(message: Any, content_column: Any) -> None:
    """Require exactly one of the two sources of texts.

    :raises InputError: both or neither of them is given.
    """
    if (message is None) == (content_column is None):
        raise InputError("exactly one of message and content_column is needed")


def check_columns(destination_column: Any, content_column: Any, key_columns: Any) -> None:
    """Refuse values that cannot be the names of columns.

    :raises InputError: names the argument.
    """
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
    texts = [] if content_column is None else [content_column]
    columns = {"destination_column": [destination_column], "content_column": texts, "key_columns": keys}
    for argument, names in columns.items():
        if any("{{" in name for name in names):
            raise InputError(f"{argument} takes no template: write the name of the column itself")
