"""Who may change the sandbox from a browser: its own page, and no page of another site."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request  # noqa: TC002 - FastAPI looks the annotation up

from airflow_provider_sms.sandbox.refusals import RefusalError

READING = frozenset({"GET", "HEAD", "OPTIONS"})
OWN = frozenset({"same-origin", "none"})


async def refuse_other_sites(request: Request) -> None:
    """Let a request pass unless it changes something and a browser sent it for another site's page.

    The control paths take no token, and a browser sends a page's form to this machine, too. It says, however, where
    the page is from (Fetch Metadata, and RFC 6454 section 7); what is no browser says neither and passes.

    :param request: the request.
    :raises RefusalError: 403.
    """
    if request.method in READING:
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    is_other_site = site is not None and site not in OWN
    is_other_origin = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if is_other_site or is_other_origin:
        raise RefusalError(403, ("OtherSite", "only the sandbox's own page may ask for this from a browser"))
