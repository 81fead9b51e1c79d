"""Names of groups that the service knows: one name or several → a list, without names that could miss their group.

A module of its own, because the hook reads the names of groups as well as the operators do, and knows no operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.messages.plain_text import plain_text
from airflow_provider_sms.recipients.values import is_missing

_RENDERED_LIST = re.compile(r"""[\[({]\s*['"].*['"]\s*,?\s*[\])}]|\[\]|\(\)""", re.DOTALL)
"""A list of names as a template renders it to text. A name in brackets, such as ``[VIP]``, has no quotes there."""


def read_groups(given: Any) -> list[str]:
    """Return the names of groups as a list, as they are written, each once.

    :param given: one name, or several.
    :raises InputError: there is no name, or one is empty, has blanks around it, is the text of a list, or differs from
        another only in its capitals: it could miss the group that is meant, or reach one group twice.
    """
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
