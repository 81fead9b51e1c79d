"""The pages: each reads the ledger, leaves out what the user may not see, and renders a template."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar
from urllib.parse import unquote

from fastapi import APIRouter, Header, HTTPException, Query, Request, Response, status
from fastapi.responses import RedirectResponse

from airflow_provider_sms.hooks.ledger import ledger_reader
from airflow_provider_sms.ledger.backend import LedgerBackend
from airflow_provider_sms.ledger.requests import unknown_requests
from airflow_provider_sms.monitoring import campaigns
from airflow_provider_sms.monitoring import status as states
from airflow_provider_sms.monitoring.campaigns import CampaignPage, NamedCampaign
from airflow_provider_sms.monitoring.reasons import reasons
from airflow_provider_sms.plugins import presenter
from airflow_provider_sms.plugins.authorization import NOT_VISIBLE, Viewer
from airflow_provider_sms.plugins.templating import render_page, root_path

router = APIRouter()

T = TypeVar("T")

CAMPAIGNS_PER_PAGE = 25

# PostgreSQL cannot hold a text with a null character.
Text = Annotated[str, Query(max_length=1000, pattern=r"^[^\x00]*$")]
Name = Annotated[str, Header(max_length=9000)]
"""A part of a campaign's name, percent-encoded: a header holds only ASCII."""


def visible_ledger(access: Viewer) -> LedgerBackend:
    """Return the ledger, for a page of one campaign.

    :raises HTTPException: 404: there is nothing in it that the user may see; it is not read to find that out.
    """
    if not access.sees_anything:
        raise HTTPException(status.HTTP_404_NOT_FOUND, NOT_VISIBLE)
    return ledger_reader()


def visible_campaign(ledger: LedgerBackend, campaign_id: int, access: Viewer) -> tuple[NamedCampaign, frozenset[str]]:
    """Return a campaign that the user may see, and every DAG that ever sent any of it.

    :raises HTTPException: 404: there is no such campaign, or the user may not see it.
    """
    dags = campaigns.dags_of_campaign(ledger, campaign_id) if 0 < campaign_id < 2**63 else frozenset[str]()
    access.require_view(dags)
    return _found(campaigns.name_campaign(ledger, campaign_id)), dags


@router.get("/")
def list_page(request: Request, access: Viewer, state: Text = "", before: Text = "", x_sms_name: Name = "") -> Response:
    """Show the campaigns, newest first.

    A name may be a person's, so it is in a header and not in the address, which web servers and proxies log.
    """
    name = unquote(x_sms_name).replace("\x00", "").strip()
    shown = CampaignPage([], None, None)
    if access.sees_anything:
        shown = campaigns.list_campaigns(
            ledger_reader(),
            may_see=access.may_see,
            name=name,
            state=state if state in states.STATES else None,
            limit=CAMPAIGNS_PER_PAGE,
            before=_id(before),
        )
    return render_page(
        request,
        "campaigns.html",
        shown=shown,
        name=name,
        state=state,
        states=states.STATES,
        before=_id(before),
    )


@router.get("/campaigns/{campaign_id}")
def campaign_page(request: Request, access: Viewer, campaign_id: int) -> Response:
    """Show one campaign."""
    ledger = visible_ledger(access)
    _, dags = visible_campaign(ledger, campaign_id, access)
    campaign = _found(campaigns.find_campaign(ledger, campaign_id))
    return render_page(
        request,
        "campaign.html",
        may_edit=access.may_edit(dags),
        campaign=campaign,
        live=campaign.state in states.LIVE,
        # A campaign that needs attention is not over: a retry may be on its way.
        is_over=campaign.state == states.COMPLETE,
        is_paused=campaign.state == states.PAUSED,
        reasons=[
            *campaigns.texted_twice(ledger, campaign_id),
            *reasons(
                campaign,
                ledger.clock(),
                presenter.unknown_words(campaign),
            ),
        ],
        outcomes=presenter.outcomes(campaign),
        unknown=unknown_requests(ledger, campaign.name),
    )


@router.get("/task")
def task_page(
    request: Request, access: Viewer, dag_id: Text, run_id: Text, task_id: Text, map_index: str = ""
) -> Response:
    """Show the campaign that a task instance sent; if it sent several, their names."""
    access.require_view([dag_id])
    ledger = ledger_reader()
    # Airflow fills it in if the task is known, with -1 for a task that is not mapped.
    index = int(map_index) if re.fullmatch(r"-?[0-9]{1,9}", map_index) else None
    # Airflow before 3.3 does not percent-encode a plus sign, which then reads as a space.
    for run in dict.fromkeys((run_id, run_id.replace(" ", "+"))):
        found = campaigns.campaigns_of_task(ledger, dag_id, run, task_id, index, may_see=access.may_see)
        if found:
            break
    if len(found) == 1:
        # Without a host: behind a proxy this server may not know the right one.
        return RedirectResponse(f"{root_path(request)}/campaigns/{found[0][0]}")
    return render_page(request, "task.html", found=found, task_id=task_id)


def _found(read: T | None) -> T:
    """Return what was read of a campaign that was there a moment ago.

    :raises HTTPException: 404: it was purged meanwhile.
    """
    if read is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, NOT_VISIBLE)
    return read


def _id(written: str) -> int | None:
    """Return the id in a link to older lines; None if it is none."""
    return int(written) if re.fullmatch(r"[0-9]{1,18}", written) else None
