"""The pages: each reads the ledger, leaves out what the user may not see, and renders a template."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response, status
from fastapi.responses import RedirectResponse

from airflow_provider_sms.hooks.ledger import ledger_reader
from airflow_provider_sms.ledger.reader import LedgerReader
from airflow_provider_sms.monitoring import attempts, campaigns, timeline
from airflow_provider_sms.monitoring import status as states
from airflow_provider_sms.monitoring.audit_log import audit_log
from airflow_provider_sms.monitoring.balances import account_balances
from airflow_provider_sms.monitoring.models import Campaign
from airflow_provider_sms.monitoring.plan_comparison import compare_with_plan
from airflow_provider_sms.plugins import presenter
from airflow_provider_sms.plugins.authorization import Viewer
from airflow_provider_sms.plugins.csrf import make_token
from airflow_provider_sms.plugins.lookup_rights import may_look_up, require_look_up
from airflow_provider_sms.plugins.templating import render_page, root_path


def _offer_look_up(request: Request, access: Viewer) -> None:
    """Tell the page's navigation whether the user may look up a number."""
    request.state.may_look_up = may_look_up(access, campaigns.dag_ids(ledger_reader()))


router = APIRouter(dependencies=[Depends(_offer_look_up)])

CAMPAIGNS_PER_PAGE = 25
REQUESTS_PER_PAGE = 50
REQUEST_STATES = ("accepted", "unknown", "claimed", "not_sent")

# PostgreSQL cannot hold a text with a null character.
Text = Annotated[str, Query(max_length=1000, pattern=r"^[^\x00]*$")]


def visible_campaign(ledger: LedgerReader, campaign_id: int, access: Viewer) -> tuple[Campaign, frozenset[str]]:
    """Return a campaign that the user may see, and every DAG that ever sent any of it.

    :raises HTTPException: 404: there is no such campaign; 403: the user may not see it.
    """
    found = campaigns.find_campaign(ledger, campaign_id) if 0 < campaign_id < 2**63 else None
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "The ledger has no such campaign. It may have been purged")
    access.require_view(found[1])
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
    ledger = ledger_reader()
    shown = campaigns.list_campaigns(
        ledger,
        hidden=access.hidden(campaigns.dag_ids(ledger)),
        name=name.strip(),
        state=state if state in states.STATES else None,
        limit=CAMPAIGNS_PER_PAGE,
        offset=(page - 1) * CAMPAIGNS_PER_PAGE,
    )
    pages = max(1, -(-shown.found // CAMPAIGNS_PER_PAGE))
    return render_page(
        request,
        "campaigns.html",
        token=None,
        shown=shown,
        name=name,
        state=state,
        states=states.STATES,
        number=min(page, pages),
        pages=pages,
    )


@router.get("/campaigns/{campaign_id}")
def campaign_page(request: Request, access: Viewer, campaign_id: int) -> Response:
    """Show one campaign."""
    ledger = ledger_reader()
    campaign, dags = visible_campaign(ledger, campaign_id, access)
    width, buckets = timeline.timeline(ledger, campaign_id)
    comparison = compare_with_plan(ledger, campaign)
    return render_page(
        request,
        "campaign.html",
        token=make_token(access.user_id),
        may_edit=access.may_edit(dags),
        campaign=campaign,
        live=campaign.state in states.LIVE,
        # A campaign that needs attention is not over: a retry may be on its way.
        is_over=campaign.state in (states.COMPLETE, states.EARLIER),
        is_paused=campaign.state == states.PAUSED,
        reasons=[*timeline.texted_twice(ledger, campaign_id), *presenter.reasons(campaign, ledger.clock())],
        outcomes=presenter.outcomes(campaign),
        width=width,
        buckets=buckets,
        networks=attempts.network_breakdown(ledger, campaign_id),
        encodings=presenter.encodings(comparison.plans),
        comparison=presenter.comparison_rows(campaign, comparison),
        unknown=timeline.unknown_requests(ledger, campaign_id),
        audit_log=audit_log(ledger, campaign_id),
        attempts=attempts.list_attempts(ledger, campaign_id),
        requests=timeline.requests(ledger, campaign_id, limit=10),
    )


@router.get("/campaigns/{campaign_id}/requests")
def requests_page(request: Request, access: Viewer, campaign_id: int, state: str = "", before: str = "") -> Response:
    """Show a campaign's requests, newest first."""
    ledger = ledger_reader()
    campaign, _ = visible_campaign(ledger, campaign_id, access)
    state = state if state in REQUEST_STATES else ""
    newest = int(before) if re.fullmatch(r"[0-9]{1,18}", before) else None
    lines = timeline.requests(ledger, campaign_id, before=newest, state=state or None, limit=REQUESTS_PER_PAGE + 1)
    return render_page(
        request,
        "requests.html",
        token=None,
        campaign=campaign,
        requests=lines[:REQUESTS_PER_PAGE],
        state=state,
        states=REQUEST_STATES,
        before=newest,
        older=lines[REQUESTS_PER_PAGE - 1].id if len(lines) > REQUESTS_PER_PAGE else None,
    )


@router.get("/task")
def task_page(
    request: Request, access: Viewer, dag_id: Text, run_id: Text, task_id: Text, map_index: str = ""
) -> Response:
    """Show the campaign that a task instance sent; if it sent several, their names."""
    if not access.may_see(dag_id):
        raise HTTPException(status.HTTP_403_FORBIDDEN, "You may not see this DAG")
    ledger = ledger_reader()
    # Airflow fills it in if the task is known, with -1 for a task that is not mapped.
    index = int(map_index) if re.fullmatch(r"-?[0-9]{1,9}", map_index) else None
    # Airflow before 3.3 does not percent-encode a plus sign, which then reads as a space.
    for run in dict.fromkeys((run_id, run_id.replace(" ", "+"))):
        found = campaigns.campaigns_of_task(ledger, dag_id, run, task_id, index)
        if found:
            break
    if len(found) == 1:
        # Without a host: behind a proxy this server may not know the right one.
        return RedirectResponse(f"{root_path(request)}/campaigns/{found[0][0]}")
    return render_page(request, "task.html", token=None, found=found, task_id=task_id)


@router.get("/balance")
def balance_page(request: Request, access: Viewer) -> Response:
    """Show the balance of each connection over time."""
    ledger = ledger_reader()
    accounts = account_balances(ledger, hidden=access.hidden(campaigns.dag_ids(ledger)))
    return render_page(request, "balance.html", token=None, accounts=accounts)


@router.get("/look-up")
def look_up_page(request: Request, access: Viewer) -> Response:
    """Show the form for looking up a number."""
    require_look_up(access, campaigns.dag_ids(ledger_reader()))
    return render_page(request, "look_up.html", token=make_token(access.user_id))
