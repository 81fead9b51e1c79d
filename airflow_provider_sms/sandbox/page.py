"""The page for a person: what arrived, newest first.

It shows numbers and texts in full, and asks no other host for anything.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from airflow_provider_sms.sandbox.answers import number

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.records import Accepted
    from airflow_provider_sms.sandbox.state import SandboxState

SHOWN = 500
REFRESH_SECONDS = 5

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Cache-Control": "no-store",
}
"""Should a text ever slip through unescaped, the browser still runs and loads nothing of it."""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="{refresh}">
<title>SMS sandbox</title>
<style>
:root {{ --text: #1b1b1b; --back: #fff; --line: #ccc; --quiet: #595959; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --text: #e6e6e6; --back: #161616; --line: #444; --quiet: #a6a6a6; }}
}}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem; color: var(--text); background: var(--back); }}
h1 {{ font-size: 1.4rem; margin: 0; }}
p {{ color: var(--quiet); }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: .4rem 1rem .4rem 0; }}
tr {{ border-bottom: 1px solid var(--line); }}
td {{ font-variant-numeric: tabular-nums; white-space: nowrap; }}
td.text {{ width: 99%; white-space: pre-wrap; overflow-wrap: anywhere; }}
</style>
<h1>SMS sandbox</h1>
<p>{summary}</p>
<table>
<thead><tr><th>Time (UTC)<th>Number<th>Text<th>Parts<th>Cost<th>Event id</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</html>
"""

_ROW = '<tr><td>{at}<td>{destination}<td class="text" dir="auto">{content}<td>{parts}<td>{cost}<td>{event_id}</tr>'


def render_page(state: SandboxState) -> str:
    """Give the page as HTML.

    :param state: the sandbox's memory.
    """
    total, newest = state.page(SHOWN, -SHOWN)
    account = "post-paid" if state.post_paid else f"balance {number(state.balance)}"
    shown = f", the newest {SHOWN} below" if total > SHOWN else ""
    return _PAGE.format(
        refresh=REFRESH_SECONDS,
        summary=f"{total} messages arrived{shown}; {account}. Nothing was sent to anyone.",
        rows="\n".join(_row(message) for message in reversed(newest)),
    )


def _row(message: Accepted) -> str:
    return _ROW.format(
        at=f"{message.at:%Y-%m-%d %H:%M:%S}",
        destination=escape(message.destination),
        content=escape(message.content),
        parts=message.parts,
        cost=number(message.cost),
        event_id=message.event_id,
    )
