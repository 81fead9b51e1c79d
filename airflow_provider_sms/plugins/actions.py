"""What people do on a page: resolve unknown requests, pause and resume a campaign, look up a number.

Airflow's audit log has each of these, the refused ones too, before it is done.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Request, Response, status
from pydantic import BaseModel, Field

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import counted
from airflow_provider_sms.hooks.audit_log import MAX_IDS, AuditedAct, audited, number_details
from airflow_provider_sms.hooks.ledger import ledger_reader, open_existing_ledger
from airflow_provider_sms.ledger.decisions import require_unknown, resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT
from airflow_provider_sms.ledger.pauses import pause, resume
from airflow_provider_sms.ledger.request_queries import named_requests
from airflow_provider_sms.monitoring.campaigns import NamedCampaign
from airflow_provider_sms.monitoring.number_lookup import Position, look_up_number, parse_number
from airflow_provider_sms.plugins.csrf import VerifiedViewer
from airflow_provider_sms.plugins.lookup_rights import LOOK_UP, LookUpRights, require_few_look_ups
from airflow_provider_sms.plugins.pages import visible_campaign, visible_ledger
from airflow_provider_sms.plugins.templating import render_page
from airflow_provider_sms.plugins.turns import in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

router = APIRouter()

MAX_REQUESTS = 1000
"""Requests that one click can resolve: their ids are in the page and in the body of its request."""


class Resolution(BaseModel):
    """What became of unknown requests, as a person knows it.

    :param people: how many people the page said it concerns.
    """

    requests: list[Annotated[int, Field(gt=0, lt=2**63)]] = Field(min_length=1, max_length=MAX_REQUESTS)
    outcome: Literal["accepted", "not_sent"]
    people: int


class NumberQuery(BaseModel):
    """A number to look up, as a person writes it.

    :param start: the campaign with which the look-up begins; None means the newest.
    :param first_byte: the first byte of the keys with which it begins in this campaign.
    """

    number: str = Field(min_length=1, max_length=100)
    region: str = Field(default="", max_length=2)
    start: Annotated[int, Field(gt=0, lt=2**63)] | None = None
    first_byte: int = Field(default=0, ge=0, le=255)


@router.post("/campaigns/{campaign_id}/resolve")
def resolve_requests(access: VerifiedViewer, campaign_id: int, resolution: Resolution) -> dict[str, Any]:
    """Close unknown requests as sent or not sent."""
    with _act("sms.resolve", access, campaign_id=campaign_id, **resolution.model_dump()) as act:
        campaign, dag_id = _editable_campaign(campaign_id, access)
        with closing(open_existing_ledger(None)) as store:
            with _conflicts():
                rows = named_requests(store, resolution.requests)
                if any(row.campaign != campaign.name for row in rows):
                    raise InputError("A request belongs to another campaign. Nothing was changed. Reload the page")
                for row in rows:
                    require_unknown(store, row.request_id)
                people = sum(row.messages for row in rows)
                if people != resolution.people:
                    raise InputError(
                        f"This now concerns {counted(people, 'person', 'people')}. Nothing was changed. Read the page "
                        "again, then decide"
                    )
            act.begin(dag_id)
            state = ACCEPTED if resolution.outcome == "accepted" else NOT_SENT
            closed: list[int] = []
            errors: list[str] = []
            for row in rows:
                try:
                    closed.append(resolve(store, row.request_id, state, access.user_name))
                except InputError as error:  # the response has arrived, or somebody else has decided
                    errors.append(str(error))
    outcome = "sent" if state == ACCEPTED else "not sent"
    next_step = " Now clear the task: its next attempt texts them." if state == NOT_SENT and closed else ""
    recorded = (
        f"Recorded as {outcome}: {counted(len(closed), 'request')} to {counted(sum(closed), 'person', 'people')}."
        f"{next_step}"
    )
    return {"message": " ".join([recorded, *errors]), "people": sum(closed)}


@router.post("/campaigns/{campaign_id}/pause")
def pause_campaign(access: VerifiedViewer, campaign_id: int) -> dict[str, Any]:
    """Pause a campaign: nothing more of it is claimed."""
    with _act("sms.pause", access, campaign_id=campaign_id) as act:
        campaign, dag_id = _editable_campaign(campaign_id, access)
        with closing(open_existing_ledger(None)) as store:
            act.begin(dag_id)
            done = pause(store, campaign.name, access.user_name)
    if done.was_paused:
        return {"message": f"The campaign is paused already, by {done.pause.paused_by}."}
    under_way = (
        f" {counted(done.requests, 'request')} with {counted(done.messages, 'message')} may still be under way."
        if done.requests
        else ""
    )
    return {"message": f"Paused: nothing more of the campaign is claimed, on any machine.{under_way}"}


@router.post("/campaigns/{campaign_id}/resume")
def resume_campaign(access: VerifiedViewer, campaign_id: int) -> dict[str, Any]:
    """Resume a paused campaign."""
    with _act("sms.resume", access, campaign_id=campaign_id) as act:
        campaign, dag_id = _editable_campaign(campaign_id, access)
        with closing(open_existing_ledger(None)) as store:
            act.begin(dag_id)
            ended = resume(store, campaign.name, access.user_name)
    if ended is None:
        return {"message": "The campaign was not paused."}
    return {"message": f"Resumed: {ended.paused_by} had paused it. Clear a task of it that has ended since."}


@router.post("/look-up")
@in_turn
def show_matches(request: Request, access: VerifiedViewer, query: NumberQuery) -> Response:
    """Show when a number was texted, and by which requests, in the campaigns in which the user may look."""
    region = query.region.strip().upper() or None
    start = None if query.start is None else Position(query.start, query.first_byte)
    with _act(LOOK_UP, access, **number_details(query.number)) as act:
        with _conflicts():
            act.details.update(number_details(parse_number(query.number, region)))
        rights = LookUpRights(access)
        rights.require()
        act.begin()
        require_few_look_ups(access)
        found = look_up_number(ledger_reader(), query.number, region, may_see=rights.may_look_into, start=start)
        act.note_shown(requests=[each.request.request_id for each in found.matches[:MAX_IDS]])
    return render_page(request, "number_matches.html", token=None, number=query.number, found=found)


def _act(event: str, access: VerifiedViewer, **details: Any) -> AbstractContextManager[AuditedAct]:
    return audited(event, user=access.user_name, details=details)


@contextmanager
def _conflicts() -> Iterator[None]:
    """Show the user an error in the user's input; the words of other errors stay in the web server's log."""
    try:
        yield
    except InputError as error:
        raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from None


def _editable_campaign(campaign_id: int, access: VerifiedViewer) -> tuple[NamedCampaign, str]:
    """Return a campaign, and one of the DAGs that sent it, whose audit log has the act."""
    campaign, dags = visible_campaign(visible_ledger(access), campaign_id, access)
    access.require_edit(dags)
    return campaign, min(dags)
