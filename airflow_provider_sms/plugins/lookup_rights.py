"""Who may look up a number on a page, in which campaigns, and how often.

Whether somebody was texted, and about what, is a fact about a person. It is told to people who work with the campaign,
who have the numbers anyway: see the option ``[sms] number_lookup``.
"""

from __future__ import annotations

import logging
from math import ceil
from typing import TYPE_CHECKING

from airflow.configuration import conf
from fastapi import HTTPException, status

from airflow_provider_sms.hooks.audit_log import seconds_until_allowed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from airflow_provider_sms.plugins.authorization import Access

log = logging.getLogger(__name__)

LOOK_UP = "sms.look_up"
"""The event of the audit log."""
LOOK_UPS_A_MINUTE = 10
"""Look-ups of one user in any minute: enough for a person, too few to try out a list of numbers."""

_EDITORS, _VIEWERS, _OFF = "editors", "viewers", "off"


def may_look_up(access: Access, dag_ids: Sequence[str]) -> bool:
    """Return whether the user may look up numbers in any campaign.

    :param dag_ids: the DAGs that sent anything.
    """
    allowed = _configured()
    if allowed == _EDITORS:
        return any(access.may_see(dag_id) and access.may_edit([dag_id]) for dag_id in dag_ids)
    return allowed == _VIEWERS


def require_look_up(access: Access, dag_ids: Sequence[str]) -> None:
    """Raise if the user may look up no number.

    :raises HTTPException: 404 if nobody may, else 403.
    """
    if _configured() == _OFF:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "Looking up numbers is turned off in this Airflow")
    if not may_look_up(access, dag_ids):
        raise HTTPException(
            status.HTTP_403_FORBIDDEN, "Only people who may edit a DAG that sends text messages may look up a number"
        )


def hidden_from_look_up(access: Access, dag_ids: Sequence[str]) -> Collection[str]:
    """Return the DAGs whose messages a look-up by the user does not find."""
    hidden = access.hidden(dag_ids)
    if _configured() == _VIEWERS:
        return hidden
    return frozenset(dag_id for dag_id in dag_ids if dag_id in hidden or not access.may_edit([dag_id]))


def require_few_look_ups(access: Access) -> None:
    """Raise if the user has looked up too many numbers in the last minute, the one just recorded included.

    :raises HTTPException: 429, with the seconds to wait.
    :raises AuditLogError: the look-ups cannot be counted.
    """
    wait = ceil(seconds_until_allowed(LOOK_UP, user=access.user_name, limit=LOOK_UPS_A_MINUTE, seconds=60))
    if wait:
        raise HTTPException(
            status.HTTP_429_TOO_MANY_REQUESTS,
            f"You may look up {LOOK_UPS_A_MINUTE} numbers a minute. Try again in {wait} seconds",
            headers={"Retry-After": str(wait)},
        )


def _configured() -> str:
    found = str(conf.get("sms", "number_lookup", fallback=_EDITORS)).strip().lower()
    if found not in (_EDITORS, _VIEWERS, _OFF):
        log.error("[sms] number_lookup is %r, so nobody may look up a number: set it to editors, viewers or off", found)
        return _OFF
    return found
