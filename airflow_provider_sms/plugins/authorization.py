"""Who may see and do what: Airflow's own users and permissions, checked for every request.

Airflow does not authenticate requests to a plugin's application. So every route depends on :func:`airflow_user`, each
campaign on the permission to see all DAGs that sent it, and each change on the permission to edit all of these.
:func:`of_own_page` adds that a button was pressed on our own page: another site could make the browser send its cookie.

A DAG that Airflow no longer has, because somebody deleted it, belongs to no team, and in a multi-team deployment
Airflow's check of it passes for members of every team. So its campaigns are only for users who may see every DAG.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.configuration import conf
from airflow.models.dag import DagModel
from airflow.utils.session import create_session
from fastapi import Depends, Header, HTTPException, status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

airflow_user = get_user
"""The dependency that returns the user of a request, and raises 401 if there is none."""

NOT_VISIBLE = "The ledger has no such campaign, or you may not see every DAG that sent it. It may have been purged"
"""The same words for both: they must not tell whether a campaign exists."""

_NO_DAG = "no DAG: every DAG"
"""An id that no DAG has, since Airflow allows no colon in one: a permission that holds for it holds for every DAG."""


class Access:
    """The permissions of the user who made a request."""

    def __init__(self, user: BaseUser) -> None:
        self._user = user
        self._seen = _Permission(user, "GET", DagAccessEntity.RUN)
        self._edited = _Permission(user, "PUT", None)

    @property
    def user_name(self) -> str:
        """The user's name, as the ledger records it with a decision."""
        return str(self._user.get_name())

    @property
    def sees_anything(self) -> bool:
        """Whether the user may see the runs of any DAG; without that, nothing of the ledger is read."""
        return self._seen.holds_anywhere

    def may_see(self, dag_id: str) -> bool:
        """Return whether the user may see the runs of a DAG."""
        return self._seen.holds_for(dag_id)

    def may_edit(self, dag_ids: Iterable[str]) -> bool:
        """Return whether the user may edit every one of these DAGs."""
        return all(self._edited.holds_for(dag_id) for dag_id in dag_ids)

    def require_view(self, dag_ids: Iterable[str]) -> None:
        """Raise if the user may not see one of these DAGs, or there are none.

        :raises HTTPException: 404.
        """
        every = sorted(dag_ids)
        if not every or not all(map(self.may_see, every)):
            raise HTTPException(status.HTTP_404_NOT_FOUND, NOT_VISIBLE)

    def require_edit(self, dag_ids: Iterable[str]) -> None:
        """Raise if the user may not edit one of these DAGs, all of which the user may see.

        :raises HTTPException: 403.
        """
        if not self.may_edit(dag_ids):
            raise HTTPException(status.HTTP_403_FORBIDDEN, "You may not edit every DAG that sent this campaign")


class _Permission:
    """A permission of a user, DAG by DAG. Airflow is asked when it is needed, and its reply is kept for the request.

    :param method: what the user may do with the DAG, as Airflow names it.
    :param entity: the aspect of the DAG; None means the DAG itself.
    """

    def __init__(self, user: BaseUser, method: Literal["GET", "PUT"], entity: DagAccessEntity | None) -> None:
        self._user = user
        self._method = method
        self._entity = entity
        self._held: dict[str, bool] = {}

    def holds_for(self, dag_id: str) -> bool:
        """Return whether the user has it for a DAG; for a DAG that Airflow does not have, whether for every DAG."""
        if dag_id not in self._held:
            known = dag_id in self._teams
            self._held[dag_id] = self._ask(dag_id, self._teams[dag_id]) if known else self.holds_everywhere
        return self._held[dag_id]

    @cached_property
    def holds_anywhere(self) -> bool:
        """Whether the user has it for any DAG."""
        return any(self.holds_for(dag_id) for dag_id in sorted(self._listed)) or self.holds_everywhere

    @cached_property
    def holds_everywhere(self) -> bool:
        """Whether the user has it for every DAG: those that Airflow has, those of each team, and any other."""
        of_others = all(self._ask(_NO_DAG, team) for team in (None, *_all_teams()))
        return of_others and all(self.holds_for(dag_id) for dag_id in self._teams.keys() - self._listed)

    @cached_property
    def _listed(self) -> set[str]:
        """The DAGs that Airflow would list for the user."""
        return get_auth_manager().get_authorized_dag_ids(user=self._user, method=self._method)

    @cached_property
    def _teams(self) -> Mapping[str, str | None]:
        """The DAGs that Airflow has, each with its team."""
        with create_session() as session:
            dag_ids: list[str] = [dag_id for (dag_id,) in session.query(DagModel.dag_id)]
            teams = DagModel.get_dag_id_to_team_name_mapping(dag_ids, session=session) if _has_teams() else {}
        return {dag_id: teams.get(dag_id) for dag_id in dag_ids}

    def _ask(self, dag_id: str, team: str | None) -> bool:
        # Airflow 3.1 asks for no team.
        details = DagDetails(id=dag_id) if team is None else DagDetails(id=dag_id, team_name=team)
        return bool(
            get_auth_manager().is_authorized_dag(
                method=self._method, access_entity=self._entity, details=details, user=self._user
            )
        )


def _has_teams() -> bool:
    return bool(conf.getboolean("core", "multi_team", fallback=False))


def _all_teams() -> set[str]:
    if not _has_teams():
        return set()
    from airflow.models.team import Team

    return set(Team.get_all_team_names())


async def _access(user: Annotated[object, Depends(airflow_user)]) -> Access:
    # Not in a thread, which costs more than this does, and of which Airflow's web server has a limited number.
    return Access(user)  # type: ignore[arg-type]


Viewer = Annotated[Access, Depends(_access)]
"""The user of a request, as the argument of a route."""


def of_own_page(
    access: Viewer, x_sms_page: Annotated[str, Header()] = "", sec_fetch_site: Annotated[str, Header()] = "same-origin"
) -> Access:
    """Return the user of a request that our own page made.

    No form can set a header, and a script of another site only where Airflow's CORS settings let it; then the browser
    says so in ``Sec-Fetch-Site``, which it leaves out where Airflow has no TLS.

    :raises HTTPException: 403: another site's page made it.
    """
    if not x_sms_page or sec_fetch_site != "same-origin":
        raise HTTPException(status.HTTP_403_FORBIDDEN, "The request came from another site. Nothing was done")
    return access


OwnPageUser = Annotated[Access, Depends(of_own_page)]
"""The user of a request that our own page made, as the argument of a route. It grants nothing: see ``require_edit``."""
