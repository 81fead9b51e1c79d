"""The pages: each reads the ledger, leaves out what its user may not see, and is rendered."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response, status
from fastapi.responses import RedirectResponse

from airflow_provider_sms.hooks.ledger import ledger_to_read
from airflow_provider_sms.ledger.reader import LedgerReader
from airflow_provider_sms.monitoring import balances, campaigns
from airflow_provider_sms.monitoring import status as states
from airflow_provider_sms.monitoring import timeline as details
from airflow_provider_sms.monitoring.audit_log import deeds
from airflow_provider_sms.monitoring.models import Campaign
from airflow_provider_sms.monitoring.plan_comparison import run_of
from airflow_provider_sms.plugins import presenter, templating
from airflow_provider_sms.plugins.authorization import Viewer
from airflow_provider_sms.plugins.csrf import make_token

router = APIRouter()

CAMPAIGNS_A_PAGE = 25
REQUESTS_A_PAGE = 50
REQUEST_STATES = ("accepted", "unknown", "claimed", "not_sent")

# PostgreSQL knows no text with the character of the number 0.
Text = Annotated[str, Query(max_length=1000, pattern=r"^[^\x00]*$")]


def visible_campaign(ledger: LedgerReader, campaign_id: int, access: Viewer) -> tuple[Campaign, frozenset[str]]:
    """Give a campaign that the user may see, and every DAG that ever sent of it.

    :raises HTTPException: 404, there is none; 403, they may not.
    """
    found = campaigns.find_campaign(ledger, campaign_id) if 0 < campaign_id < 2**63 else None
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "The ledger has no such campaign")
    access.require_sight(found[1])
    return found


@router.get("/")
def list_page(
    request: Request,
    access: Viewer,
    name: Text = "",
    state: Text = "",
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> Response:
    """Show the campaigns, newest first."""
    ledger = ledger_to_read()
    shown = campaigns.list_campaigns(
        ledger,
        hidden=access.hidden(campaigns.dag_ids(ledger)),
        name=name.strip(),
        state=state if state in states.STATES else None,
        limit=CAMPAIGNS_A_PAGE,
        offset=(page - 1) * CAMPAIGNS_A_PAGE,
    )
    pages = max(1, -(-shown.found // CAMPAIGNS_A_PAGE))
    return templating.page(
        request,
        "campaigns.html",
        token=None,
        shown=shown,
        name=name,
        state=state,
        states=states.STATES,
        number=min(page, pages),
        pages=pages,
        ledger=ledger.description,
    )


@router.get("/campaigns/{campaign_id}")
def campaign_page(request: Request, access: Viewer, campaign_id: int) -> Response:
    """Show one campaign."""
    ledger = ledger_to_read()
    campaign, dags = visible_campaign(ledger, campaign_id, access)
    width, stretches = details.timeline(ledger, campaign_id)
    run = run_of(ledger, campaign)
    return templating.page(
        request,
        "campaign.html",
        token=make_token(access.user_id),
        may_edit=access.may_edit(dags),
        campaign=campaign,
        live=campaign.state in states.LIVE,
        # Of what needs attention a retry may be on its way.
        is_over=campaign.state in (states.COMPLETE, states.EARLIER),
        is_paused=campaign.state == states.PAUSED,
        reasons=[*details.texted_twice(ledger, campaign_id), *presenter.reasons(campaign, ledger.clock())],
        outcomes=presenter.outcomes(campaign),
        width=width,
        stretches=stretches,
        networks=details.networks(ledger, campaign_id),
        encodings=presenter.encodings(run.plans),
        compared=presenter.compared(campaign, run),
        unknown=details.unknown_requests(ledger, campaign_id),
        deeds=deeds(ledger, campaign_id),
        tries=details.tries(ledger, campaign_id),
        requests=details.requests(ledger, campaign_id, limit=10),
    )


@router.get("/campaigns/{campaign_id}/requests")
def requests_page(request: Request, access: Viewer, campaign_id: int, state: str = "", before: str = "") -> Response:
    """Show a campaign's requests, newest first."""
    ledger = ledger_to_read()
    campaign, _ = visible_campaign(ledger, campaign_id, access)
    state = state if state in REQUEST_STATES else ""
    newest = int(before) if re.fullmatch(r"[0-9]{1,18}", before) else None
    lines = details.requests(ledger, campaign_id, before=newest, state=state or None, limit=REQUESTS_A_PAGE + 1)
    return templating.page(
        request,
        "requests.html",
        token=None,
        campaign=campaign,
        requests=lines[:REQUESTS_A_PAGE],
        state=state,
        states=REQUEST_STATES,
        before=newest,
        older=lines[REQUESTS_A_PAGE - 1].id if len(lines) > REQUESTS_A_PAGE else None,
    )


@router.get("/task")
def task_page(
    request: Request, access: Viewer, dag_id: Text, run_id: Text, task_id: Text, map_index: str = ""
) -> Response:
    """Show the campaign of a task instance; where it has several, their names."""
    if not access.may_see(dag_id):
        raise HTTPException(status.HTTP_403_FORBIDDEN, "You may not see this DAG")
    ledger = ledger_to_read()
    # Airflow replaces it where it knows one, and writes -1 for a task that is not mapped.
    index = int(map_index) if re.fullmatch(r"-?[0-9]{1,9}", map_index) else None
    # Airflow before 3.3 does not write a plus sign as addresses have it.
    for run in dict.fromkeys((run_id, run_id.replace(" ", "+"))):
        found = campaigns.campaigns_of_task(ledger, dag_id, run, task_id, index)
        if found:
            break
    if len(found) == 1:
        # Without the host, which a proxy before this server may know better.
        return RedirectResponse(f"{templating.root_of(request)}/campaigns/{found[0][0]}")
    return templating.page(request, "task.html", token=None, found=found, task_id=task_id, ledger=ledger.description)


@router.get("/balance")
def balance_page(request: Request, access: Viewer) -> Response:
    """Show the balance of each connection over time."""
    ledger = ledger_to_read()
    found = balances.accounts(ledger, hidden=access.hidden(campaigns.dag_ids(ledger)))
    return templating.page(request, "balance.html", token=None, accounts=found)


@router.get("/look-up")
def look_up_page(request: Request, access: Viewer) -> Response:
    """Show the form in which a number is looked up."""
    return templating.page(request, "look_up.html", token=make_token(access.user_id))
