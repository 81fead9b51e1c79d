"""The commands of the first pages, as they stand there, in a shell and an environment that they make themselves."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from support.faults.rest import until
from support.pages import blocks
from support.reader import ENVIRONMENT, INSTALL, QUICKSTART, README, Reader, WebUser, counts, dag_of
from support.terminal import PATIENCE

TASK = "text_them"
AN_ERROR = re.compile(r"\[(?:\x1b\[[\d;]*m)*error|XCom not found")
SATURDAY = 5
LONGEST_HALF_HOUR = 600.0
"""Seconds for a page's commands, without the install and ``standalone``: a reader's half hour is mostly reading."""


def test_the_readme_leads_to_three_texts(campaign):
    """The paste prints what the page shows, and run again, texts nobody; all of it in ten minutes."""
    (shown,) = (block.code for block in blocks(README, "text"))
    (again,) = re.findall(r"Run `(airflow dags test \w+)` again", README.read_text())
    assert lines_missing(shown, campaign.said) == []
    assert AN_ERROR.findall(campaign.said) == []
    assert counts(campaign.type(again))[-1]["already_sent"] == "3"
    assert len(campaign.texts()) == len(set(campaign.texts())) == 3
    print(f"the commands of the README took {campaign.seconds:.0f} s, without the install")  # noqa: T201 - shown by pytest -rP
    assert campaign.seconds <= LONGEST_HALF_HOUR


def lines_missing(plan, said):
    """Return the lines of a plan on a page that were not logged; an ellipsis stands for others."""
    return [line for line in plan.splitlines() if line.strip() not in {"…", ""} and line.strip() not in said]


def who_got_it(said):
    """Return the state, the campaign and the task of the only request that an output tells of."""
    names, row = cells(said)
    return {name: row[names.index(name)] for name in ("state", "campaign", "task")}


@pytest.fixture(scope="module")
def quickstart(home):
    """Steps 1 to 5, in the environment that the same line of the README made: who did them, and what came of it."""
    install, sandbox, connection, table, plan, run, again, who, *_ = [block.code for block in blocks(QUICKSTART, "sh")]
    assert install.splitlines()[-1] == INSTALL.splitlines()[-1]
    (own,) = re.findall(r"venv ~/(\S+)", install)
    (home / own).parent.mkdir()
    (home / own).symlink_to(home / ENVIRONMENT)
    reader = Reader(home)
    try:
        reader.start_sandbox(sandbox)
        reader.type(install.splitlines()[1])
        connected = reader.type(connection)
        reader.type(table)
        place, code = dag_of(QUICKSTART)
        (home / place).write_text(reader.adapted(code))
        planned, *said, answer = [reader.type(code) for code in (plan, run, again, who)]
        yield SimpleNamespace(
            reader=reader,
            connected=connected,
            planned=planned,
            said=said,
            answer=answer,
            texts=reader.texts(),
            seconds=reader.seconds,
        )
    finally:
        reader.close()


def test_the_quickstart_leads_to_four_texts(quickstart):
    """Steps 2 to 5 print the lines that the page shows, and the ledger knows who got the fourth."""
    assert "Connection success!" in quickstart.connected
    (plan,) = (block.code for block in blocks(QUICKSTART, "text") if "dry run" in block.code)
    assert lines_missing(plan, quickstart.planned) == []
    assert who_got_it(quickstart.answer)["state"] == "accepted"
    shown = [line for block in blocks(QUICKSTART, "text") for line in counts(block.code)]
    assert [counts(said)[-1] for said in quickstart.said] == shown
    assert len(quickstart.texts) == len(set(quickstart.texts)) == 4


def latest_nine_o_clock(now):
    """Return the latest nine o'clock on a weekday in South Africa."""
    found = now.astimezone(ZoneInfo("Africa/Johannesburg")).replace(hour=9, minute=0, second=0, microsecond=0)
    while found > now or found.weekday() >= SATURDAY:
        found -= timedelta(days=1)
    return found


def cells(said):
    """Return the rows of the first table of an output; a cell that goes over several lines is one text."""
    lines = said.splitlines()
    rule = next(number for number, line in enumerate(lines) if re.fullmatch(r"=+(\+=+)+", line))
    starts = [0, *(found.end() for found in re.finditer(r"\+", lines[rule]))]
    rows = []
    for line in [lines[rule - 1], *lines[rule + 1 :]]:
        if "|" not in line:
            break
        parts = [line[start : end and end - 1].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]
        if parts[0]:
            rows.append(parts)
        else:
            rows[-1] = [f"{first} {second}".strip() for first, second in zip(rows[-1], parts, strict=True)]
    return rows


def listed(said):
    """Return what a list of unknown requests says, but for the time of the claim."""
    names, *rows = cells(said)
    table = [{name: cell for name, cell in zip(names, row, strict=True) if name != "claimed_at"} for row in rows]
    return table, " ".join(said[said.index("What the balance tells:") :].split())


def test_the_quickstart_leads_to_one_text_after_a_lost_response(quickstart, home):
    """Steps 6 and 7, with an ``airflow standalone``: the run at nine, the alert, what is unknown."""
    reader = quickstart.reader
    install, _, connection, _, _, _, _, _, *after = (block.code for block in blocks(QUICKSTART, "sh"))
    standalone, unpause, lose, unknown, close = after
    place, _ = dag_of(QUICKSTART)
    _, scheduled, *_ = (block.code for block in blocks(QUICKSTART) if block.is_dag)
    (home / place).write_text(reader.adapted(scheduled))
    printed = reader.start_airflow(standalone)
    (password,) = re.findall(r"Password for user 'admin': (\S+)", printed)
    web = WebUser(reader.web_url, "admin", password, "remind_customers")

    exports = [line for line in connection.splitlines() if line.startswith("export ")]
    reader.type("\n".join([install.splitlines()[1], *exports]), terminal=3)
    nine = latest_nine_o_clock(datetime.now().astimezone())
    assert "remind_customers" in reader.type(unpause, terminal=3)
    run = web.await_run(web.await_new_run("scheduled", set()), "success", "failed")
    assert (run["state"], datetime.fromisoformat(run["logical_date"])) == ("success", nine)
    assert web.summary(run["dag_run_id"], TASK)["already_sent"] == 4

    known = web.run_ids("manual")
    reader.type(lose, terminal=3)
    run_id = web.await_new_run("manual", known)
    web.await_run(run_id, "failed")
    task = web.task(run_id, TASK)
    assert (task["state"], task["try_number"], task["max_tries"]) == ("failed", 1, 3)
    until(lambda: len(reader.messages()) == 6, seconds=PATIENCE, what="somebody is alerted")
    lerato, alert = ((message["destination"], message["content"]) for message in reader.messages()[4:])
    assert lerato[0] == "27820000005"
    assert alert == ("27820000099", f"remind_customers: {TASK} failed, see Airflow")
    (shown,) = (block.code for block in blocks(QUICKSTART, "text") if block.code.startswith("request"))
    assert listed(reader.type(unknown, terminal=3)) == listed(shown)

    reader.type(close, terminal=3)
    web.await_run(run_id, "success")
    assert web.summary(run_id, TASK)["already_sent"] == 5
    assert [message["destination"] for message in reader.messages()].count("27820000005") == 1

    print(f"steps 2 to 5 took {quickstart.seconds:.0f} s")  # noqa: T201 - shown by pytest -rP
    assert quickstart.seconds <= LONGEST_HALF_HOUR

    (remove,) = re.findall(r"\nTo remove everything, press Ctrl\+C .* `(rm -r ~/\S+)`", QUICKSTART.read_text())
    for terminal in (1, 2):
        reader.close_window(terminal)
    reader.type(remove, terminal=3)
    assert not (home / place).exists()
