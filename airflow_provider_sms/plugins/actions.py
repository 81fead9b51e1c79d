"""What people do on a page: resolve unknown requests, pause and resume a campaign.

Airflow's audit log has each of these.
"""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal

from airflow.api_fastapi.logging.decorators import action_logging
from fastapi import APIRouter, Depends, HTTPException, Path, status
from pydantic import BaseModel, Field

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import counted, task_words
from airflow_provider_sms.hooks.ledger import open_existing_ledger
from airflow_provider_sms.ledger.campaigns import pause, resume
from airflow_provider_sms.ledger.decisions import require_unknown, resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT
from airflow_provider_sms.ledger.requests import named_requests
from airflow_provider_sms.monitoring.attempts import failed_on_unknown
from airflow_provider_sms.monitoring.campaigns import NamedCampaign
from airflow_provider_sms.plugins.authorization import Access, Editor, of_own_page
from airflow_provider_sms.plugins.pages import visible_campaign, visible_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_provider_sms.ledger.model import Claimant
    from airflow_provider_sms.ledger.requests import RequestRow

# Before the audit log, which a form of another site could fill otherwise.
router = APIRouter(dependencies=[Depends(of_own_page)])

MAX_REQUESTS = 1000
"""Requests that one click can resolve: their ids are in the page and in the body of its request."""
_MOST_PEOPLE = 10**9
"""The most people that a resolution may concern: more than any ledger has."""

NOT_OF_THIS_CAMPAIGN = "The page lists a request that this campaign does not have. Nothing was changed. Reload the page"

CampaignId = Annotated[int, Path(gt=0, lt=2**63)]
"""The id of a campaign, as a ledger holds it."""


class Resolution(BaseModel):
    """What became of unknown requests, as a person knows it.

    :param people: how many people the page said it concerns.
    """

    requests: list[Annotated[int, Field(gt=0, lt=2**63)]] = Field(min_length=1, max_length=MAX_REQUESTS)
    outcome: Literal["accepted", "not_sent"]
    people: int = Field(ge=0, le=_MOST_PEOPLE)


@router.post("/campaigns/{campaign_id}/resolve", dependencies=[Depends(action_logging("sms.resolve"))])
def resolve_requests(access: Editor, campaign_id: CampaignId, resolution: Resolution) -> dict[str, Any]:
    """Close unknown requests as sent or not sent."""
    campaign = _editable_campaign(campaign_id, access)
    with closing(open_existing_ledger(None)) as store:
        with _conflicts():
            rows: list[RequestRow] = []
            with suppress(InputError):  # the ledger does not have all of them
                rows = named_requests(store, resolution.requests)
            # The same words in both cases: they must not tell which requests a hidden campaign has.
            if not rows or any(row.campaign != campaign.name for row in rows):
                raise InputError(NOT_OF_THIS_CAMPAIGN)
            for row in rows:
                require_unknown(row)
            people = sum(row.messages for row in rows)
            if people != resolution.people:
                raise InputError(
                    f"This now concerns {counted(people, 'person', 'people')}. Nothing was changed. Read the page "
                    "again, then decide"
                )
        state = ACCEPTED if resolution.outcome == "accepted" else NOT_SENT
        closed: list[int] = []
        errors: list[str] = []
        for row in rows:
            try:
                closed.append(resolve(store, row.request_id, state, access.user_name))
            except InputError as error:  # the response has arrived, or somebody else has decided
                errors.append(str(error))
        failed = failed_on_unknown(store, [campaign.name]) if closed else []
    outcome = "sent" if state == ACCEPTED else "not sent"
    next_step = " Now clear the task: its next attempt texts them." if state == NOT_SENT and closed else ""
    # Only the service knows who is in a group.
    to = "groups" if any(row.kind == "group" for row in rows) else counted(sum(closed), "person", "people")
    recorded = f"Recorded as {outcome}: {counted(len(closed), 'request')} to {to}.{next_step}"
    others = _other_tasks(failed, rows, access)
    return {"message": " ".join([recorded, *others, *errors]), "people": sum(closed)}


def _other_tasks(failed: Sequence[Claimant], rows: Sequence[RequestRow], access: Access) -> list[str]:
    """Return a sentence that names the tasks to clear beside those that made the requests; none if there are none.

    :param failed: the last attempts of tasks that failed on unknown requests. Those of DAGs that the user may not edit
        are left out.
    """
    makers = {row.task_instance for row in rows}
    others = [who for who in failed if who.task_instance not in makers]
    tasks = [task_words(*who.task_instance) for who in others if access.may_edit([who.dag_id])]
    return [f"Clear what failed on unknown requests, too: {'; '.join(tasks)}."] if tasks else []


@router.post("/campaigns/{campaign_id}/pause", dependencies=[Depends(action_logging("sms.pause"))])
def pause_campaign(access: Editor, campaign_id: CampaignId) -> dict[str, Any]:
    """Pause a campaign: nothing more of it is claimed."""
    campaign = _editable_campaign(campaign_id, access)
    with closing(open_existing_ledger(None)) as store:
        before = pause(store, campaign.name, access.user_name)
    if before is not None:
        return {"message": f"The campaign is paused already, by {before.paused_by}."}
    return {
        "message": "Paused: nothing more of the campaign is claimed, on any machine. Claimed requests are still posted."
    }


@router.post("/campaigns/{campaign_id}/resume", dependencies=[Depends(action_logging("sms.resume"))])
def resume_campaign(access: Editor, campaign_id: CampaignId) -> dict[str, Any]:
    """Resume a paused campaign."""
    campaign = _editable_campaign(campaign_id, access)
    with closing(open_existing_ledger(None)) as store:
        ended = resume(store, campaign.name, access.user_name)
    if ended is None:
        return {"message": "The campaign was not paused."}
    return {"message": f"Resumed: {ended.paused_by} had paused it. Clear a task of it that has ended since."}


@contextmanager
def _conflicts() -> Iterator[None]:
    """Show the user an error in the user's input; the words of other errors stay in the web server's log."""
    try:
        yield
    except InputError as error:
        raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from None


def _editable_campaign(campaign_id: int, access: Access) -> NamedCampaign:
    """Return a campaign of which the user may edit every DAG."""
    campaign, dags = visible_campaign(visible_ledger(access), campaign_id, access)
    access.require_edit(dags)
    return campaign
