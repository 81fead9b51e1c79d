"""What a campaign may be called, and the default. Known without a database: names are checked when a DAG is loaded."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import InputError

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.model import Claimant

MAX_CHARACTERS = 1000
"""The length of the ledger's column."""

_REFUSED = {"Cc": "control character", "Cf": "character that nobody sees", "Cs": "half a character"}
_REFUSED |= {"Zl": "line break", "Zp": "line break"}
_JOINERS = "\u200c\u200d"  # within words of Persian, and in emoji
_INSTEAD = "Nothing was sent. Give the campaign a name, or leave campaign out for one of each task and DAG run"


def default_name(who: Claimant) -> str:
    """Return the default name of the campaign of a task and a DAG run.

    The ids of DAGs and tasks have letters, digits, dashes, dots and underscores only, so no two tasks share a name. A
    run's id may contain anything, and comes last.
    """
    return f"{who.dag_id}/{who.task_id}/{who.run_id}"


def read_name(given: object) -> str:
    """Return the name that a task is given, without surrounding blanks and in Unicode's composed form (NFC)."""
    if given is None or (isinstance(given, str) and given.strip() == "None"):
        raise InputError(
            "campaign is None, once its template is rendered: every run with such a name would share one campaign, and "
            f"only the first of them would text anybody. {_INSTEAD}"
        )
    if not isinstance(given, str):
        raise InputError(f"campaign must be text, not {type(given).__name__}. {_INSTEAD}")
    name = unicodedata.normalize("NFC", given).strip()
    if not name:
        raise InputError(f"campaign is empty. {_INSTEAD}")
    if len(name) > MAX_CHARACTERS:
        raise InputError(f"campaign has {len(name)} characters, and may have {MAX_CHARACTERS}. {_INSTEAD}")
    for place, character in enumerate(name):
        kind = None if character in _JOINERS else _REFUSED.get(unicodedata.category(character))
        if kind is not None:
            raise InputError(f"campaign has a {kind} (U+{ord(character):04X}) at position {place + 1}. {_INSTEAD}")
    return name
