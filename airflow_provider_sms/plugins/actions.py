"""What people do on a page: say what became of requests, hold a campaign, look a number up."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Request, Response, status
from pydantic import BaseModel, Field

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import counted
from airflow_provider_sms.hooks.ledger import ledger_to_read, open_existing_ledger
from airflow_provider_sms.ledger.decisions import require_unknown, resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT
from airflow_provider_sms.ledger.pauses import pause, resume
from airflow_provider_sms.ledger.requests import named_requests
from airflow_provider_sms.monitoring import campaigns
from airflow_provider_sms.monitoring.models import Campaign
from airflow_provider_sms.monitoring.number_lookup import look_up
from airflow_provider_sms.plugins import templating
from airflow_provider_sms.plugins.csrf import OwnPage
from airflow_provider_sms.plugins.pages import visible_campaign

router = APIRouter()

MOST_REQUESTS = 1000


class Resolution(BaseModel):
    """What a person says became of requests.

    :param people: the messages that they were told it concerns.
    """

    requests: list[Annotated[int, Field(gt=0, lt=2**63)]] = Field(min_length=1, max_length=MOST_REQUESTS)
    outcome: Literal["accepted", "not_sent"]
    people: int


class Wanted(BaseModel):
    """A number to be looked up, as a person writes it."""

    number: str = Field(min_length=1, max_length=100)
    region: str = Field(default="", max_length=2)


@router.post("/campaigns/{campaign_id}/resolve")
def resolve_requests(access: OwnPage, campaign_id: int, said: Resolution) -> dict[str, Any]:
    """Record what became of requests whose outcome is unknown."""
    campaign = _editable_campaign(campaign_id, access)
    with closing(open_existing_ledger(None)) as store:
        rows = named_requests(store, said.requests)
        if any(row.campaign != campaign.name for row in rows):
            raise HTTPException(status.HTTP_409_CONFLICT, "A request is of another campaign. Nothing was changed")
        for row in rows:
            require_unknown(store, row.request_id)
        concerned = sum(row.messages for row in rows)
        if concerned != said.people:
            raise HTTPException(
                status.HTTP_409_CONFLICT,
                f"It concerns {counted(concerned, 'person', 'people')} now. Nothing was changed: look again",
            )
        state = ACCEPTED if said.outcome == "accepted" else NOT_SENT
        held: list[int] = []
        late: list[str] = []
        for row in rows:
            try:
                held.append(resolve(store, row.request_id, state, access.user_name))
            except InputError as error:  # its answer has come meanwhile, or somebody else was quicker
                late.append(str(error))
    word = "sent" if state == ACCEPTED else "not sent"
    then = "" if state == ACCEPTED or not held else " Clear the task, and its next try texts them."
    noted = f"Noted: {counted(len(held), 'request')} to {counted(sum(held), 'person', 'people')} {word}.{then}"
    return {"message": " ".join([noted, *late]), "people": sum(held)}


@router.post("/campaigns/{campaign_id}/pause")
def pause_campaign(access: OwnPage, campaign_id: int) -> dict[str, Any]:
    """Have nothing more of a campaign claimed."""
    campaign = _editable_campaign(campaign_id, access)
    with closing(open_existing_ledger(None)) as store:
        done = pause(store, campaign.name, access.user_name)
    if done.was_paused:
        return {"message": f"It is paused already, by {done.pause.paused_by}."}
    under_way = (
        f" {counted(done.requests, 'request')} with {counted(done.messages, 'message')} may be under way, and end."
        if done.requests
        else ""
    )
    return {"message": f"Paused: nothing more of it is claimed, on any machine.{under_way}"}


@router.post("/campaigns/{campaign_id}/resume")
def resume_campaign(access: OwnPage, campaign_id: int) -> dict[str, Any]:
    """Let a campaign that is paused go on."""
    campaign = _editable_campaign(campaign_id, access)
    with closing(open_existing_ledger(None)) as store:
        ended = resume(store, campaign.name, access.user_name)
    if ended is None:
        return {"message": "It was not paused."}
    return {"message": f"It goes on: {ended.paused_by} had paused it. A task that has ended since is to be cleared."}


@router.post("/look-up")
def look_up_number(request: Request, access: OwnPage, wanted: Wanted) -> Response:
    """Show when a number was texted, by what; the campaigns of DAGs that the user may not see are left out."""
    ledger = ledger_to_read()
    hidden = access.hidden(campaigns.dag_ids(ledger))
    found = look_up(ledger, wanted.number, wanted.region.strip().upper() or None, hidden=hidden)
    return templating.page(request, "found.html", token=None, number=wanted.number, found=found)


def _editable_campaign(campaign_id: int, access: OwnPage) -> Campaign:
    campaign, dags = visible_campaign(ledger_to_read(), campaign_id, access)
    access.require_edit(dags)
    return campaign
