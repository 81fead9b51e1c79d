"""What people do on a page: decide about an unknown request, pause and resume a campaign.

Airflow's audit log has each of these.
"""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Annotated, Literal

from airflow.api_fastapi.logging.decorators import action_logging
from fastapi import APIRouter, Depends, HTTPException, Path, status
from pydantic import BaseModel, Field

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import counted, task_words
from airflow_provider_sms.hooks.ledger import ledger_reader, open_existing_ledger
from airflow_provider_sms.ledger.campaigns import pause, resume
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT
from airflow_provider_sms.ledger.requests import named_requests
from airflow_provider_sms.monitoring.attempts import tasks_to_clear
from airflow_provider_sms.monitoring.campaigns import find_campaign
from airflow_provider_sms.plugins.authorization import NOT_VISIBLE, Access, OwnPageUser, of_own_page
from airflow_provider_sms.plugins.pages import dags_to_see

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.requests import RequestRow

# Before the audit log, which a form of another site could fill otherwise.
router = APIRouter(dependencies=[Depends(of_own_page)])

NOT_OF_THIS_CAMPAIGN = "This campaign has no such request. Nothing was changed. Reload the page"

CampaignId = Annotated[int, Path(gt=0, lt=2**63)]
"""The id of a campaign, as a ledger holds it."""


class Decision(BaseModel):
    """What became of an unknown request, as a person knows it."""

    request: int = Field(gt=0, lt=2**63)
    outcome: Literal["accepted", "not_sent"]


@router.post("/campaigns/{campaign_id}/resolve", dependencies=[Depends(action_logging("sms.resolve"))])
def resolve_request(access: OwnPageUser, campaign_id: CampaignId, decision: Decision) -> dict[str, str]:
    """Close an unknown request as sent or not sent."""
    campaign = _name_to_edit(campaign_id, access)
    state = ACCEPTED if decision.outcome == "accepted" else NOT_SENT
    with closing(open_existing_ledger(None)) as store:
        row = _request_of(store, campaign, decision.request)
        try:
            messages = resolve(store, row.request_id, state, access.user_name)
        except InputError as error:  # the response has arrived, or somebody else has decided
            raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from None
        tasks = [task_words(*task) for task in tasks_to_clear(store, [row]) if access.may_edit(task[:1])]
    outcome = "sent" if state == ACCEPTED else "not sent"
    # Only the service knows who is in a group.
    whom = "groups" if row.kind == "group" else counted(messages, "person", "people")
    return {"message": f"Recorded as {outcome}: 1 request to {whom}. Now clear what has failed: {'; '.join(tasks)}."}


@router.post("/campaigns/{campaign_id}/pause", dependencies=[Depends(action_logging("sms.pause"))])
def pause_campaign(access: OwnPageUser, campaign_id: CampaignId) -> dict[str, str]:
    """Pause a campaign: nothing more of it is claimed."""
    campaign = _name_to_edit(campaign_id, access)
    with closing(open_existing_ledger(None)) as store:
        before = pause(store, campaign, access.user_name)
    if before is not None:
        return {"message": f"The campaign is paused already, by {before.paused_by}."}
    return {
        "message": "Paused: nothing more of the campaign is claimed, on any machine. Claimed requests are still posted."
    }


@router.post("/campaigns/{campaign_id}/resume", dependencies=[Depends(action_logging("sms.resume"))])
def resume_campaign(access: OwnPageUser, campaign_id: CampaignId) -> dict[str, str]:
    """Resume a paused campaign."""
    campaign = _name_to_edit(campaign_id, access)
    with closing(open_existing_ledger(None)) as store:
        ended = resume(store, campaign, access.user_name)
    if ended is None:
        return {"message": "The campaign was not paused."}
    return {"message": f"Resumed: {ended.paused_by} had paused it. Clear a task of it that has ended since."}


def _name_to_edit(campaign_id: int, access: Access) -> str:
    """Return the name of a campaign of which the user may edit every DAG."""
    access.require_edit(dags_to_see(campaign_id, access))
    campaign = find_campaign(ledger_reader(), campaign_id)
    if campaign is None:  # it was purged meanwhile
        raise HTTPException(status.HTTP_404_NOT_FOUND, NOT_VISIBLE)
    return campaign.name


def _request_of(store: LedgerBackend, campaign: str, request_id: int) -> RequestRow:
    """Return a request of a campaign.

    :raises HTTPException: 409, with the same words for a request of another campaign and for one that does not exist:
        they must not tell which requests a hidden campaign has.
    """
    with suppress(InputError):
        (row,) = named_requests(store, [request_id])
        if row.campaign == campaign:
            return row
    raise HTTPException(status.HTTP_409_CONFLICT, NOT_OF_THIS_CAMPAIGN)
