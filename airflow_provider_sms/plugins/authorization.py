"""Who may see and do what: Airflow's own users and permissions, checked for every request.

Airflow does not authenticate requests to a plugin's application. So every route depends on :func:`airflow_user`, each
campaign on the permission to see all DAGs that sent it, and each change on the permission to edit all of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import get_user, requires_access_dag
from fastapi import Depends, HTTPException, Request, status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

airflow_user = get_user
"""The dependency that returns the user of a request, and raises 401 if there is none."""


class Access:
    """The permissions of the user who made a request."""

    def __init__(self, request: Request, user: BaseUser) -> None:
        self._request = request
        self._user = user
        self._may_see: dict[str, bool] = {}

    @property
    def user_id(self) -> str:
        """The id by which Airflow knows the user."""
        return str(self._user.get_id())

    @property
    def user_name(self) -> str:
        """The user's name, as the ledger records it with a decision."""
        return str(self._user.get_name())

    def may_see(self, dag_id: str) -> bool:
        """Return whether the user may see the runs of a DAG."""
        if dag_id not in self._may_see:
            required = requires_access_dag("GET", DagAccessEntity.RUN, dag_id)
            self._may_see[dag_id] = self._allows(required)
        return self._may_see[dag_id]

    def may_edit(self, dag_ids: Iterable[str]) -> bool:
        """Return whether the user may edit every one of these DAGs."""
        return all(self._allows(requires_access_dag("PUT", None, dag_id)) for dag_id in dag_ids)

    def hidden(self, dag_ids: Iterable[str]) -> Collection[str]:
        """Return the DAGs that the user may not see."""
        return frozenset(dag_id for dag_id in dag_ids if not self.may_see(dag_id))

    def require_view(self, dag_ids: Iterable[str]) -> None:
        """Raise if the user may not see one of these DAGs.

        :raises HTTPException: 403.
        """
        if self.hidden(dag_ids):
            raise HTTPException(status.HTTP_403_FORBIDDEN, "You may not see every DAG that sent this campaign")

    def require_edit(self, dag_ids: Iterable[str]) -> None:
        """Raise if the user may not edit one of these DAGs.

        :raises HTTPException: 403.
        """
        every = list(dag_ids)
        self.require_view(every)
        if not self.may_edit(every):
            raise HTTPException(status.HTTP_403_FORBIDDEN, "You may not edit every DAG that sent this campaign")

    def _allows(self, required: object) -> bool:
        try:
            required(self._request, self._user)  # type: ignore[operator]
        except HTTPException as refusal:
            if refusal.status_code != status.HTTP_403_FORBIDDEN:
                raise
            return False
        return True


def _access(request: Request, user: Annotated[object, Depends(airflow_user)]) -> Access:
    return Access(request, user)  # type: ignore[arg-type]


Viewer = Annotated[Access, Depends(_access)]
"""The user of a request, as the argument of a route."""
