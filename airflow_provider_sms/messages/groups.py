"""What makes a text to groups the same message again, and which names of groups are clear.

Groups are the service's: whether ``Staff`` and ``staff`` are one group there is not known here. So names are posted as
they are given, another spelling is another group, and what could be one group under two names is refused.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.messages.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def check_groups(groups: Sequence[str]) -> None:
    """Refuse names that could miss the group that is meant, or reach one group twice.

    :raises InputError: there is none, or one is empty, has blanks around it, or is another's but for its capitals.
    """
    if not groups or not all(isinstance(name, str) and name.strip() for name in groups):
        raise InputError("groups must be at least one group's name, and no name may be empty")
    known: dict[str, str] = {}
    for name in groups:
        spelt = plain_text(name)
        if spelt != spelt.strip():
            raise InputError(f"groups: there are blanks around the name {name!r}; write {spelt.strip()!r}")
        other = known.setdefault(spelt.casefold(), spelt)
        if other != spelt:
            raise InputError(
                f"groups: {other!r} and {spelt!r} differ in capitals alone. If they are one group at the service, its "
                "people would get the text twice. Name the group once, as the service does"
            )


def group_key(message: str, groups: Iterable[str]) -> bytes:
    """Digest a text and the groups that it goes to; their order and repeats do not matter.

    :returns: a BLAKE2b digest of 16 bytes.
    """
    identity = json.dumps([sorted({plain_text(name) for name in groups}), message])
    return blake2b(identity.encode(), digest_size=16, person=b"sms: groups").digest()
