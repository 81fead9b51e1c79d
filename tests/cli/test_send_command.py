from __future__ import annotations

import getpass
import io
import json
import os
import signal
import subprocess
import threading
from contextlib import closing

import pytest
import yaml
from support.sending import claimant, outgoing

from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.approvals import latest_approval
from airflow_provider_sms.ledger.campaign_names import latest_names
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.sqlite import open_sqlite

ANN, BOB = "0820000001", "0820000002"
"""As people in South Africa write them."""
NUMBERS = ("27820000001", "27820000002")
WATER = "No water from 9"


@pytest.fixture
def send(console, sms_default, ledger_path):
    """Run ``airflow-sms send`` in this process against the sandbox, with a ledger of this test's own."""

    def send(*arguments, campaign="water", message=WATER):
        words = ("send", "--campaign", campaign, "--message", message, "--default-region", "ZA", *arguments)
        return console(*words)

    return send


@pytest.fixture
def people_file(tmp_path):
    """A file of three rows and two people."""
    path = tmp_path / "people.csv"
    path.write_text(f"destination,first_name\n{ANN},Ann\n{BOB},Bob\n{BOB},Bob\n")
    return path


def test_a_few_people_are_texted(send, witnessed):
    """Each number gets the text once, and the summary is on stdout, with counts as numbers and event ids as text."""
    said = send("--to", ANN, BOB, "--to", ANN, "--yes", "-o", "json")
    (summary,) = said.data
    assert (said.status, witnessed()) == (0, {(number, WATER): 1 for number in NUMBERS})
    assert (summary["campaign"], summary["rows"], summary["accepted"], summary["duplicate"]) == ("water", 3, 2, 1)
    assert (summary["cost"], [type(each) for each in summary["event_ids"]]) == (2.0, [str])
    assert "Plan " in said.err


def test_one_text_may_hold_several_numbers(send, witnessed):
    """With commas between them, as people paste them."""
    assert send("--to", f"{ANN}, {BOB}", "--yes").status == 0
    assert witnessed() == {(number, WATER): 1 for number in NUMBERS}


def test_the_same_command_again_texts_nobody(send, witnessed):
    """The ledger knows the campaign; another person in it is texted, and nobody is asked where nobody is left."""
    send("--to", ANN, "--yes")
    again = send("--to", ANN, "--yes", "-o", "json")
    assert (again.status, again.data[0]["already_sent"], again.data[0]["accepted"]) == (0, 1, 0)
    more = send("--to", ANN, BOB, "--yes", "-o", "json")
    assert (more.status, more.data[0]["already_sent"], more.data[0]["accepted"]) == (0, 1, 1)
    assert witnessed() == {(number, WATER): 1 for number in NUMBERS}


def test_another_text_in_the_same_campaign_is_refused(send, witnessed):
    """It would text the same people again; another campaign may."""
    send("--to", ANN, "--yes")
    said = send("--to", ANN, "--yes", message="No water from 10")
    assert (said.status, said.out) == (1, "")
    assert said.err.splitlines()[-1] == (
        "Sending ended early: 1 message to a recipient whom an earlier command of this campaign texted, or may have, "
        "has another text or other key columns now, so people could be texted twice. Nothing was sent by this command. "
        "To send the rest of the campaign, repeat the command with the text, the key columns and the rows that it had. "
        "If a second text is intended, send it under another campaign name"
    )
    assert send("--to", ANN, "--yes", message="No water from 10", campaign="water 2").status == 0
    assert witnessed() == {(NUMBERS[0], WATER): 1, (NUMBERS[0], "No water from 10"): 1}


@pytest.mark.slow
def test_nobody_is_texted_whom_no_question_named(send, sms_default, sandbox, at_terminal, witnessed):
    """The plan had nobody to text, so nothing was asked; the balance shows then that the first request was lost."""
    sms_default(extra={"timeout": 1, "connect_timeout": 1})
    sandbox.state.set_faults([{"kind": "drop_before"}])
    assert send("--to", ANN, "--yes").status != 0
    at_terminal("n\n")
    said = send("--to", ANN, "--on-unknown", "reconcile")
    assert (said.status, witnessed()) == (1, {})
    assert "1 message may be sent now, and could not when the plan was made" in said.err


def test_a_file_is_texted_as_an_operator_would(send, people_file, witnessed):
    """Columns fill the text, and rows that repeat one another are one message."""
    said = send("--source", people_file, "--yes", "-o", "yaml", message="Hi {first_name}")
    (summary,) = yaml.safe_load(said.out)
    assert (summary["rows"], summary["accepted"], summary["duplicate"]) == (3, 2, 1)
    assert witnessed() == {(NUMBERS[0], "Hi Ann"): 1, (NUMBERS[1], "Hi Bob"): 1}


def test_a_dry_run_sends_nothing(send, sandbox, ledger_path):
    """It shows the plan, as data where data is asked for, and makes no ledger."""
    said = send("--to", ANN, BOB, "--dry-run", "-o", "json")
    (plan,) = said.data
    assert (said.status, plan["to_send"], plan["cost"], plan["balance"]) == (0, 2, 2.0, 100_000.0)
    in_words = send("--to", ANN, BOB, "--dry-run")
    assert (in_words.status, in_words.out, "to send" in in_words.err) == (0, "", True)
    assert (sandbox.state.accepted_messages, ledger_path.exists()) == ([], False)


def test_a_person_confirms_the_plan(send, at_terminal, witnessed):
    """The question follows the plan and some messages, with masked numbers; the ledger has who said yes."""
    at_terminal("y\n")
    said = send("--to", ANN, BOB)
    asked = said.err[: said.err.index("[y/N]")]
    assert (said.status, len(witnessed())) == (0, 2)
    assert f"  2782*****01: {WATER}\n" in asked
    assert asked.index("Plan ") < asked.index("2782*****01")
    assert "Send 2 messages for about 2 credits, with connection sms_default?" in asked
    assert "accepted" in said.out
    with closing(open_ledger(None)) as store:
        found = latest_approval(store, "water")
    assert (found.decision, found.decided_by, found.messages) == ("send", getpass.getuser(), 2)


def test_a_new_ledger_is_said(send):
    """The command may run with other settings than the tasks whose ledger knows whom they texted."""
    said = [send("--to", ANN, "--yes"), send("--to", BOB, "--yes", campaign="other")]
    assert ["The ledger is new" in each.err for each in said] == [True, False]


def test_a_no_sends_nothing(send, at_terminal, sandbox):
    """Any answer but yes, and Ctrl-C, end the command; the same command may be run again."""
    for answer in ("n\n", "\n", KeyboardInterrupt()):
        at_terminal(answer)
        said = send("--to", ANN)
        assert (said.status, said.out, said.err.endswith("Nothing was done\n")) == (1, "", True)
    assert sandbox.state.accepted_messages == []
    assert send("--to", ANN, "--yes").status == 0


def test_without_a_terminal_it_needs_yes(send, sandbox, ledger_path, monkeypatch):
    """It refuses before it reads anything."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    said = send("--to", ANN)
    assert (said.status, said.out) == (1, "")
    assert said.err == "Nothing was done: there is no terminal to ask at. Add --yes to confirm\n"
    assert (sandbox.state.requests, ledger_path.exists()) == ([], False)


def test_no_whole_number_is_shown(send, at_terminal, people_file):
    """Neither of somebody who is texted, nor of a row that cannot be; with ``--yes``, no text either."""
    at_terminal("y\n")
    said = [
        send("--to", ANN, BOB),
        send("--to", f"{ANN}x", "--yes", campaign="b"),
        send("--source", people_file, "--yes", campaign="c"),
        send("--source", people_file, "--destination-column", ANN, "--yes", campaign="d"),
        send("--to", ANN, "--yes", message="No water from 10"),
        send(ANN, "--to", BOB, "--yes"),
    ]
    assert [each.status for each in said] == [0, 1, 0, 1, 1, 2]
    shown = "".join(each.out + each.err for each in said[:3] + said[4:])
    assert [number for number in (ANN, BOB, *NUMBERS) if number in shown] == []
    assert WATER not in said[2].out + said[2].err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Give the numbers with --to, or a file with --source, and not both"),
        (("--to", ANN, "--source", "people.csv"), "and not both"),
        (("--to", ANN, "--on-unknown", "resend"), "invalid choice"),
    ],
)
def test_wrong_usage_is_status_2(send, ledger_path, arguments, words):
    """A combination that cannot be meant is refused before anything is read."""
    said = send(*arguments, "--yes")
    assert (said.status, said.out, words in said.err, ledger_path.exists()) == (2, "", True, False)


def test_a_campaign_has_to_be_named(console):
    """Without a name the same command again would text everybody again."""
    said = console("send", "--message", WATER, "--to", ANN, "--yes")
    assert (said.status, "--campaign" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--source", "/nowhere/people.csv"), "/nowhere/people.csv"),
        (("--destination-column", "cell"), "'cell'"),
        (("--message", "Hi {name}"), "'name'"),
        (("--campaign", " "), "campaign is empty"),
        (("--conn-id", "nowhere"), "Connection 'nowhere' does not exist"),
        (("--ledger-conn-id", "nowhere"), "Airflow has no connection 'nowhere'"),
    ],
)
def test_a_mistake_is_one_line_and_status_1(send, people_file, sandbox, arguments, words):
    """The error is the operator's, without a traceback; nothing is sent."""
    said = send("--source", people_file, "--yes", *arguments)
    assert (said.status, said.out, words in said.err.splitlines()[-1]) == (1, "", True)
    assert ("Traceback" in said.err, sandbox.state.accepted_messages) == (False, [])


@pytest.mark.parametrize("message", ["promo.txt", "texts/promo.txt", "promo.j2", "Date {{ ds }}", "Hi {% if x %}x"])
def test_a_message_that_an_operator_would_render_is_refused(send, sandbox, message):
    """The command reads no file and renders no templates, so people would read the file's name or the template."""
    said = send("--to", ANN, "--yes", message=message)
    assert (said.status, said.out, sandbox.state.requests) == (1, "", [])
    assert said.err.startswith("message: the command ")


def test_a_word_with_the_end_of_a_file_in_a_sentence_is_a_text(send, witnessed):
    """As the operator reads it: a name is one word, and no address of a page."""
    texts = ["We read promo.txt", "https://example.com/a.txt"]
    for text in texts:
        assert send("--to", ANN, "--yes", message=text, campaign=text).status == 0
    assert witnessed() == {(NUMBERS[0], text): 1 for text in texts}


def test_a_wrong_token_is_status_1(send, sms_default, sandbox):
    """Nobody is asked about a plan that cannot be sent; a dry run says that the balance could not be read."""
    sms_default(password="wrong-token-0123")
    said = send("--to", ANN, "--yes")
    assert (said.status, "401" in said.err, "wrong-token" in said.err) == (1, True, False)
    assert "(connection 'sms_default', host 127.0.0.1:" in said.err
    dry = send("--to", ANN, "--dry-run")
    assert (dry.status, "without the balance" in dry.err) == (0, True)
    assert sandbox.state.accepted_messages == []


def test_a_campaign_that_an_older_version_named_is_found(send, ledger_path, witnessed):
    """With a blank after its name, as a task finds it: a second campaign would text everybody again."""
    with closing(open_sqlite(ledger_path)) as store:
        CampaignLedger(store, "spring ", claimant())
    for _ in range(2):
        assert send("--to", ANN, "--yes", campaign="spring ").status == 0
    assert witnessed() == {(NUMBERS[0], WATER): 1}
    with closing(open_sqlite(ledger_path)) as store:
        assert latest_names(store) == ["spring "]


def test_a_long_name_is_told_whole(send, console, sandbox):
    """By the command to run again: what stands for the run in the ledger is cut short, and names no campaign."""
    campaign = "spring " + "x" * 300
    sandbox.state.set_faults([{"kind": "drop_after"}])
    assert send("--to", ANN, "--yes", campaign=campaign).status == 1
    resolved = console("ledger", "resolve", "1", "--as", "not-sent", "--yes")
    again = f"Now run airflow-sms send again for campaign {campaign}, with the same arguments"
    assert again in resolved.err.splitlines()


def test_a_lost_response_is_left_to_a_person(send, console, sandbox, witnessed):
    """It is status 1, a later command does not send it again, and resolving it names the command to run again."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    said = send("--to", ANN, "--yes", "-o", "json")
    assert (said.status, said.data[0]["unknown"], "may have been sent" in said.err) == (1, 1, True)
    assert send("--to", ANN, "--yes").status == 1
    (row,) = console("ledger", "unknown", "-o", "json").data
    resolved = console("ledger", "resolve", row["request"], "--as", "accepted", "--yes")
    assert "Now run airflow-sms send again for campaign water, with the same arguments" in resolved.err
    assert "Airflow" not in resolved.err
    assert send("--to", ANN, "--yes").status == 0
    assert witnessed() == {(NUMBERS[0], WATER): 1}


def test_rows_that_cannot_be_texted_are_left_out_where_that_is_asked_for(send, witnessed):
    """``--on-invalid skip`` is the operator's; without it one such row stops everything."""
    assert (send("--to", ANN, "12", "--yes").status, witnessed()) == (1, {})
    said = send("--to", ANN, "12", "--on-invalid", "skip", "--yes", "-o", "json")
    assert (said.status, said.data[0]["invalid"], said.data[0]["accepted"]) == (0, 1, 1)


def test_people_who_had_another_text_from_a_dag_may_stop_it(send, sandbox, sent_to_file):
    """``--max-repeats`` is the operator's, and read as strictly."""
    sent_to_file([outgoing(int(NUMBERS[0]))], campaign="water")
    said = send("--to", ANN, BOB, "--yes", "--max-repeats", "0")
    assert (said.status, sandbox.state.accepted_messages) == (1, [])
    assert "1 person has had another text of campaign water, more than max_repeats=0. Nothing was sent" in said.err
    assert "max_repeats must be a whole number" in send("--to", ANN, "--yes", "--max-repeats", "few").err
    assert send("--to", ANN, BOB, "--yes", "--max-repeats", "1").status == 0


def test_yes_alone_texts_nobody_again_whom_a_dag_texted(send, sandbox, sent_to_file):
    """Nobody sees the plan: so a second text of the campaign needs ``--max-repeats``, and the error says so."""
    sent_to_file([outgoing(int(NUMBERS[0]))], campaign="water")
    said = send("--to", ANN, BOB, "--yes")
    assert (said.status, said.out, sandbox.state.accepted_messages) == (1, "", [])
    assert said.err.splitlines()[-1] == (
        "1 person has had another text of campaign water, more than max_repeats=0, the default with --yes. Nothing was "
        "sent. If a DAG sent them the same message, give its key columns with --key-columns. If they should get one "
        "more, add --max-repeats 1, or send it under another campaign name"
    )
    assert send("--to", ANN, BOB, "--yes", "--max-repeats", "1").status == 0


def test_key_columns_tell_a_message_in_other_words(send, tmp_path, witnessed):
    """``--key-columns`` is the operator's; it may be repeated, and takes several columns, with commas as well."""
    table, keys = tmp_path / "invoices.csv", ("--key-columns", "invoice,month", "--key-columns", "year")
    table.write_text(f"destination,invoice,month,year\n{ANN},7,5,2026\n{ANN},8,5,2026\n")
    for message, accepted in (("Invoice {invoice}", 2), ("Pay {invoice}", 0)):
        said = send("--source", table, *keys, "--yes", "-o", "json", message=message)
        assert (said.status, said.data[0]["accepted"], said.data[0]["already_sent"]) == (0, accepted, 2 - accepted)
    assert "'day'" in send("--source", table, "--key-columns", "year", "day", "--yes").err
    assert witnessed() == {(NUMBERS[0], f"Invoice {number}"): 1 for number in (7, 8)}


def test_rows_that_cannot_be_texted_are_listed_one_a_line(send, sandbox):
    """The lines of the error are lines of the terminal."""
    said = send("--to", ANN, "12", "13", "--yes")
    assert (said.status, sandbox.state.accepted_messages) == (1, [])
    error = said.err[said.err.index("2 of 3 rows cannot be texted") :].splitlines()
    assert [line.partition(":")[0] for line in error[1:]] == [f"  row {row}, column destination" for row in (1, 2)]


def test_the_balance_closes_a_lost_response_where_that_is_asked_for(send, sandbox, witnessed):
    """``--on-unknown reconcile`` is the operator's."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    said = send("--to", ANN, "--on-unknown", "reconcile", "--yes", "-o", "json")
    assert (said.status, said.data[0]["accepted"], witnessed()) == (0, 1, {(NUMBERS[0], WATER): 1})


def test_a_ledger_on_a_server_is_found(send, postgres_ledger_url, monkeypatch, console, witnessed, ledger_path):
    """As an operator finds it: by ``--ledger-conn-id``."""
    url = postgres_ledger_url
    fields = {"conn_type": "postgres", "host": url.query["host"], "schema": url.database, "login": url.username}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps(fields))
    for _ in range(2):
        assert send("--to", ANN, "--yes", "--ledger-conn-id", "sms_ledger").status == 0
    assert (witnessed(), ledger_path.exists()) == ({(NUMBERS[0], WATER): 1}, False)
    listed = console("ledger", "list", "--ledger-conn-id", "sms_ledger", "-o", "json").data
    assert [(row["campaign"], row["state"]) for row in listed] == [("water", "complete")]


def test_a_connection_of_airflows_database_is_found(send, sms_default, monkeypatch, witnessed):
    """Commands are no tasks, for which Airflow 3 alone reads its connections."""
    from airflow.models.connection import Connection as StoredConnection
    from airflow.utils.session import create_session

    fields = json.loads(os.environ["AIRFLOW_CONN_SMS_DEFAULT"])
    stored = StoredConnection(conn_id="stored", conn_type="sms", host=fields["host"], password=fields["password"])
    with create_session() as session:
        session.add(stored)
    try:
        assert send("--to", ANN, "--yes", "--conn-id", "stored").status == 0
    finally:
        with create_session() as session:
            session.query(StoredConnection).filter(StoredConnection.conn_id == "stored").delete()
    assert (len(witnessed()), "AIRFLOW_CONN_STORED" in os.environ) == (1, False)


@pytest.mark.slow
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_is_told_to_stop_records_what_is_in_flight(send, sandbox, witnessed, console, told):
    """However often it is told: claims are recorded, and the same command sends the rest."""
    sandbox.state.set_faults([{"kind": "delay", "seconds": 2.0}])
    sent = threading.Event()

    def stop():
        while not sandbox.state.accepted_messages:
            if sent.wait(0.05):
                return
        for _ in range(2):
            os.kill(os.getpid(), told)
            sent.wait(0.3)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        said = send("--to", ANN, "--yes")
    finally:
        sent.set()
        thread.join()
    assert (said.status, "Run the command again to send the rest" in said.err) == (1, True)
    assert console("ledger", "unknown", "-o", "json").data == []
    assert send("--to", ANN, BOB, "--yes").status == 0
    assert set(witnessed().values()) == {1}


@pytest.mark.slow
def test_a_process_of_its_own_keeps_stdout_for_data(console_script, sms_default, ledger_path, people_file):
    """The summary is all that is on stdout; the plan and the log are lines on stderr, without times and places."""
    command = [*console_script, "send", "--campaign", "water", "--message", "Hi {first_name}", "--yes", "-o", "json"]
    more = ["--source", str(people_file), "--default-region", "ZA"]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[0]["accepted"] == 2
    assert "\nPlan " in done.stderr
    assert "Campaign water, remembered in" in done.stderr


@pytest.mark.slow
def test_a_send_goes_on_where_nobody_reads_its_log(console_script, sms_default, ledger_path, sandbox, console):
    """As with ``| head``, or a log on a full disk: everybody is texted, so the command succeeds."""
    sandbox.state.set_faults([{"kind": "delay", "seconds": 0.5}])
    command = [*console_script, "send", "--campaign", "water", "--message", WATER, "--yes", "-o", "json"]
    more = ["--to", ANN, BOB, "--default-region", "ZA"]
    with subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while "remembered in" not in process.stderr.readline():
            pass
        process.stderr.close()
        told = json.loads(process.stdout.read())
    assert (process.returncode, told[0]["accepted"]) == (0, 2)
    assert console("ledger", "status", "water", "-o", "json").data[0]["state"] == "complete"
