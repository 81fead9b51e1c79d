"""Who may look up a number on a page, in which campaigns, and how often.

Whether somebody was texted, and about what, is a fact about a person. Only people who work with the campaign, and have
the numbers anyway, are told: see the option ``[sms] number_lookup``.
"""

from __future__ import annotations

import logging
from math import ceil
from typing import TYPE_CHECKING

from airflow.configuration import conf
from fastapi import HTTPException, status

from airflow_provider_sms.formatting import counted
from airflow_provider_sms.hooks.audit_log import seconds_until_allowed

if TYPE_CHECKING:
    from airflow_provider_sms.plugins.authorization import Access

log = logging.getLogger(__name__)

LOOK_UP = "sms.look_up"
"""The event of the audit log."""
LOOK_UPS_A_MINUTE = 20
"""Look-ups of one user in any minute, each step back through a large ledger included.

As many as a person makes, and too few to try out a list of numbers.
"""

_EDITORS, _VIEWERS, _OFF = "editors", "viewers", "off"


class LookUpRights:
    """Whether and where a user may look up numbers, according to the current option."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._allowed = _configured()

    @property
    def any(self) -> bool:
        """Whether the user may look up numbers in any campaign; the ledger is not read for it."""
        edits = self._allowed == _EDITORS and self._access.edits_anything
        return (edits or self._allowed == _VIEWERS) and self._access.sees_anything

    def require(self) -> None:
        """Raise if the user may not look up any number.

        :raises HTTPException: 404 if nobody may, else 403.
        """
        if self._allowed == _OFF:
            raise HTTPException(status.HTTP_404_NOT_FOUND, "Looking up numbers is turned off in this Airflow")
        if not self.any:
            verb = "edit" if self._allowed == _EDITORS else "see"
            raise HTTPException(
                status.HTTP_403_FORBIDDEN, f"You may not look up numbers, because you may not {verb} any DAG"
            )

    def may_look_into(self, dag_id: str) -> bool:
        """Return whether a look-up finds messages of this DAG."""
        editable = self._allowed == _VIEWERS or self._access.may_edit([dag_id])
        return editable and self._access.may_see(dag_id)


def require_few_look_ups(access: Access) -> None:
    """Raise if the user has looked up too many numbers in the last minute, the one just recorded included.

    :raises HTTPException: 429, with the seconds to wait.
    :raises AuditLogError: the look-ups cannot be counted.
    """
    wait = ceil(seconds_until_allowed(LOOK_UP, user=access.user_name, limit=LOOK_UPS_A_MINUTE, seconds=60))
    if wait:
        raise HTTPException(
            status.HTTP_429_TOO_MANY_REQUESTS,
            f"You may look up {LOOK_UPS_A_MINUTE} numbers a minute. Try again in {counted(wait, 'second')}",
            headers={"Retry-After": str(wait)},
        )


def _configured() -> str:
    found = str(conf.get("sms", "number_lookup", fallback=_EDITORS)).strip().lower()
    if found not in (_EDITORS, _VIEWERS, _OFF):
        log.error("[sms] number_lookup is %r, so nobody may look up a number: set it to editors, viewers or off", found)
        return _OFF
    return found
