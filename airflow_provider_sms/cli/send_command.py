"""The command that texts people from a terminal: send.

It makes one attempt of a :class:`BulkSmsOperator`, outside a DAG: the same check, plan, ledger, requests and summary.
A person at the terminal sees the plan and confirms it.
"""

from __future__ import annotations

import logging
import os
import re
import signal
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_sms.cli.console import (
    JSON,
    YAML,
    command,
    confirm,
    end_with_wrong_usage,
    print_message,
    print_rows,
    require_terminal,
    user_name,
)
from airflow_provider_sms.cli.terminal_task import TASK_ID, TerminalTaskInstance, campaign_in_ledger, next_attempt
from airflow_provider_sms.exceptions import InputError, LimitError, ServiceError, SmsError
from airflow_provider_sms.execution.failures import describe, log_unforeseen
from airflow_provider_sms.execution.options import SendingTask
from airflow_provider_sms.execution.xcom import PLAN, SUMMARY
from airflow_provider_sms.formatting import at_least, by_count, counted
from airflow_provider_sms.hooks.ledger import ledger_conn_ids
from airflow_provider_sms.hooks.stored_connection import lent_to_hooks
from airflow_provider_sms.masking import mask_number
from airflow_provider_sms.operators.rendering import is_text_file
from airflow_provider_sms.operators.sms import BulkSmsOperator
from airflow_provider_sms.planning.limits import repeats_in_words

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from airflow_provider_sms.planning.plan import Plan

PACKAGE = "airflow_provider_sms"
_JINJA = re.compile(r"\{\{.*?\}\}|\{%", re.DOTALL)
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SendError(SmsError):
    """The command did not text everybody; of a task, Airflow's log would say so."""


@command
def send_messages(args: Namespace) -> None:
    """Text a few people, or the people in a file."""
    if bool(args.to) == (args.source is not None):
        end_with_wrong_usage("Give the numbers with --to, or a file with --source, and not both")
    if not args.dry_run:
        require_terminal(yes=args.yes)
    with ExitStack() as stack:
        stack.enter_context(lent_to_hooks(args.conn_id, *ledger_conn_ids(args.ledger_conn_id)))
        campaign = campaign_in_ledger(args.campaign, args.ledger_conn_id)
        instance = next_attempt(campaign, args.ledger_conn_id)
        stack.enter_context(_log_for_a_person())
        stack.enter_context(_stopped_in_order())
        is_done = False
        try:
            _attempt(args, campaign, instance)
            is_done = True
        except KeyboardInterrupt:
            raise SendError("Stopped. Run the command again to send the rest: nobody is texted twice") from None
        finally:
            _print_result(args, instance.xcoms, is_done=is_done)


def _several(written: Sequence[str]) -> list[str]:
    """Return the values of an option; one text may hold several, with commas between them."""
    return [value.strip() for text in written for value in text.split(",")]


def _require_plain_text(message: str) -> None:
    """Refuse a message that a DAG would render: here people would receive the name of the file, or the template.

    :raises InputError: it is such a message; says what to write.
    """
    if is_text_file(message):
        raise InputError(
            'message: the command does not read files: give the text itself, such as --message "$(cat promo.txt)". To '
            "send one word that ends like the name of a file, put a blank after it"
        )
    if _JINJA.search(message):
        raise InputError(
            "message: the command renders no templates of Airflow: write the value itself in place of {{ … }} or "
            "{% … %}. A column of the file is written {first_name}"
        )


def _attempt(args: Namespace, campaign: str, instance: TerminalTaskInstance) -> None:
    """Make one attempt of the operator.

    With ``--yes`` nobody sees in the plan that people have had another text of the campaign, so a limit refuses it.

    :raises SmsError: not everybody was texted; says why.
    """
    _require_plain_text(args.message)
    has_default_limit = args.yes and args.max_repeats is None
    operator = BulkSmsOperator(
        task_id=TASK_ID,
        source=[{args.destination_column: number} for number in _several(args.to)] if args.to else args.source,
        message=args.message,
        campaign=campaign,
        destination_column=args.destination_column,
        default_region=args.default_region,
        key_columns=_several(args.key_columns) if args.key_columns else None,
        on_invalid=args.on_invalid,
        on_unknown=args.on_unknown,
        max_repeats=0 if has_default_limit else args.max_repeats,
        sms_conn_id=args.conn_id,
        ledger_conn_id=args.ledger_conn_id,
        dry_run=args.dry_run,
    )
    context = instance.context(operator)
    task = SendingTask(
        context,
        None,
        operator.hook,
        operator.ledger_conn_id,
        operator.stop_signal,
        partial(operator.campaign_name, context),
    )
    try:
        if args.dry_run:
            _send(operator, task)
            return
        _send(operator, replace(task, confirm=partial(_confirm, args, ledger_is_new=instance.ledger_is_new)))
    except LimitError:  # of max_repeats: the command has no other limit
        if not has_default_limit:
            raise
        repeats = instance.xcoms[PLAN]["repeats"]
        raise SendError(
            f"{repeats_in_words(repeats, campaign)}, more than max_repeats=0, the default with --yes. Nothing was "
            "sent. If a DAG sent them the same message, give its key columns with --key-columns. If they should get "
            f"one more, add --max-repeats {repeats}, or send it under another campaign name"
        ) from None


def _send(operator: BulkSmsOperator, task: SendingTask) -> None:
    try:
        operator.send(task)
    except ServiceError as error:
        raise SendError(describe(error)) from None  # with the connection, as a task's error
    except SmsError:
        raise
    except AirflowException as error:
        raise SendError(str(error)) from None
    except Exception as error:  # noqa: BLE001  # a source can fail in any way, and its words may quote a row
        log_unforeseen(error)
        raise SendError(describe(error)) from None


def _confirm(args: Namespace, plan: Plan, samples: Sequence[tuple[str, str]], *, ledger_is_new: bool) -> str:
    """Ask about a plan, and return who said yes.

    :param ledger_is_new: whether the ledger knows of nobody who was texted.
    :raises NotConfirmedError: the answer is not yes.
    """
    if ledger_is_new:
        print_message(
            "The ledger is new, and knows of nobody who was texted before. Tasks that send may have another one"
        )
    if not args.yes:  # what a script prints may be kept in a log, where no text belongs
        print_message("Some of the messages:")
        for destination, content in samples:
            print_message(f"  {mask_number(destination)}: {content}")
    messages = counted(plan.to_send, "message")
    cost = f"{plan.cost:f} {by_count(plan.cost, 'credit')}"
    confirm(f"Send {messages} for about {cost}, with connection {args.conn_id}?", yes=args.yes)
    return user_name()


def _print_result(args: Namespace, xcoms: dict[str, Any], *, is_done: bool) -> None:
    """Print the summary of a send that is done or has made a request; of a dry run, the plan, unless already shown.

    :param is_done: whether everybody was texted, now or before.
    """
    in_words = args.output not in (JSON, YAML)
    plan, summary = xcoms.get(PLAN), xcoms.get(SUMMARY)
    if args.dry_run:
        if plan is not None and not in_words:
            print_rows([plan], args.output)
    elif summary is not None and (is_done or summary["requests"]):
        unknown = summary["requests_of_unknown_cost"]
        in_table = {**summary, "cost": at_least(str(summary["cost"]), unknown), "requests_of_unknown_cost": None}
        shown = [{"property": name, "value": value} for name, value in in_table.items() if _is_figure(value)]
        print_rows(shown if in_words else [summary], args.output)


def _is_figure(value: Any) -> bool:
    return not isinstance(value, (list, dict)) and value is not None


@contextmanager
def _log_for_a_person() -> Iterator[None]:
    """Print what a task logs on stderr, without the time and place of each line."""
    logger, lines = logging.getLogger(PACKAGE), _Lines()
    before = logger.level, logger.propagate
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(lines)
        logger.level, logger.propagate = before


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        # Nobody may read it any more, or its disk may be full: no reason for a send to end, or to count as failed.
        with suppress(OSError):
            print_message(*record.getMessage().splitlines())


@contextmanager
def _stopped_in_order() -> Iterator[None]:
    """Treat SIGTERM and a closed terminal as Ctrl-C: nothing more is claimed, and requests in flight are recorded.

    Another signal meanwhile would leave these unknown, so it is ignored.
    """
    before = {each: signal.getsignal(each) for each in STOPS if signal.getsignal(each) is not signal.SIG_IGN}

    def stop(*_: object) -> NoReturn:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        with suppress(OSError):  # the terminal may be gone
            os.write(2, b"Stopping: the requests in flight are awaited and recorded\n")
        raise KeyboardInterrupt

    for each in before:
        signal.signal(each, stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
