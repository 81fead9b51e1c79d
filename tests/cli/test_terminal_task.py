from __future__ import annotations

from support.sending import claimant

from airflow_provider_sms.cli.terminal_task import TASK_ID, next_attempt, run_id_of
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.model import COMMAND_DAG


def test_each_campaign_is_a_task_instance_of_its_own():
    """By its name; a long name is cut to what the ledger's column holds, and stays different from others."""
    assert run_id_of("spring") == "spring"
    long, other = "s" * 300, "s" * 299 + "t"
    assert (len(run_id_of(long)), run_id_of(long) == run_id_of(other)) == (250, False)


def test_each_command_is_a_further_attempt(file_store):
    """The ledger counts the attempts of a campaign; those of others, and of DAGs, do not count."""
    assert next_attempt("spring", None).try_number == 1
    for number in (1, 2):
        register(file_store, claimant(number, dag_id=COMMAND_DAG, task_id=TASK_ID, run_id="spring"))
    register(file_store, claimant(7, run_id="spring"))
    assert [next_attempt(name, None).try_number for name in ("spring", "summer")] == [3, 1]


def test_without_a_ledger_it_is_the_first_attempt(ledger_path, airflow_home):
    """No ledger is made to find that out."""
    attempt = next_attempt("spring", None)
    assert (attempt.try_number, attempt.ledger_is_new, ledger_path.exists()) == (1, True, False)
