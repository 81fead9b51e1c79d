"""The pages: each reads the ledger, leaves out what the user may not see, and renders a template."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response, status
from fastapi.responses import RedirectResponse

from airflow_provider_sms.hooks.ledger import ledger_reader
from airflow_provider_sms.ledger.requests import unknown_requests
from airflow_provider_sms.monitoring import campaigns
from airflow_provider_sms.monitoring.campaigns import CampaignPage
from airflow_provider_sms.monitoring.reasons import reasons
from airflow_provider_sms.monitoring.status import COMPLETE, PAUSED
from airflow_provider_sms.plugins.authorization import NOT_VISIBLE, Viewer
from airflow_provider_sms.plugins.templating import render_page, root_path

router = APIRouter()

CAMPAIGNS_PER_PAGE = 25
NOTHING_SENT = (
    "This task has texted nobody in this run, according to the ledger that this page reads, or you may not see every "
    "DAG that sent its campaign"
)

# PostgreSQL cannot hold a text with a null character.
Text = Annotated[str, Query(max_length=1000, pattern=r"^[^\x00]*$")]


def dags_to_see(campaign_id: int, access: Viewer) -> frozenset[str]:
    """Return every DAG that ever sent any of a campaign, all of which the user may see.

    :raises HTTPException: 404: there is no such campaign, or the user may not see it. Of a user who may see nothing of
        the ledger, it is not read to find that out.
    """
    dags = frozenset[str]()
    if access.sees_anything and 0 < campaign_id < 2**63:
        dags = campaigns.dags_of_campaign(ledger_reader(), campaign_id)
    access.require_view(dags)
    return dags


@router.get("/")
def list_page(request: Request, access: Viewer, before: str = "") -> Response:
    """Show the campaigns, newest first.

    :param before: the id in a link to older ones; else the newest are shown.
    """
    newest = int(before) if re.fullmatch(r"[0-9]{1,18}", before) else None
    shown = CampaignPage([], None)
    if access.sees_anything:
        shown = campaigns.list_campaigns(
            ledger_reader(), may_see=access.may_see, limit=CAMPAIGNS_PER_PAGE, before=newest
        )
    return render_page(request, "campaigns.html", shown=shown)


@router.get("/campaigns/{campaign_id}")
def campaign_page(request: Request, access: Viewer, campaign_id: int) -> Response:
    """Show one campaign."""
    dags = dags_to_see(campaign_id, access)
    ledger = ledger_reader()
    campaign = campaigns.find_campaign(ledger, campaign_id)
    if campaign is None:  # it was purged meanwhile
        raise HTTPException(status.HTTP_404_NOT_FOUND, NOT_VISIBLE)
    return render_page(
        request,
        "campaign.html",
        campaign=campaign,
        may_edit=access.may_edit(dags),
        # A campaign that needs attention is not over: a retry may be on its way.
        is_over=campaign.state == COMPLETE,
        is_paused=campaign.state == PAUSED,
        reasons=[*campaigns.texted_twice(ledger, campaign_id), *reasons(campaign, ledger.clock())],
        unknown=unknown_requests(ledger, campaign.name),
    )


@router.get("/task")
def task_page(
    request: Request, access: Viewer, dag_id: Text, run_id: Text, task_id: Text, map_index: str = ""
) -> Response:
    """Lead to the campaign that a task instance sent last."""
    access.require_view([dag_id])
    # Airflow fills it in if the task is known, with -1 for a task that is not mapped.
    index = int(map_index) if re.fullmatch(r"-?[0-9]{1,9}", map_index) else None
    # Airflow before 3.3 does not percent-encode a plus sign, which then reads as a space.
    runs = {run_id, run_id.replace(" ", "+")}
    found = campaigns.campaign_of_task(ledger_reader(), dag_id, runs, task_id, index, may_see=access.may_see)
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, NOTHING_SENT)
    # Without a host: behind a proxy this server may not know the right one.
    return RedirectResponse(f"{root_path(request)}/campaigns/{found}")
