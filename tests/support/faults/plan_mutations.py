"""Defects between what was seen and what is done: a table that was checked, requests that were counted."""

from __future__ import annotations

from support.faults.mutation import Mutation

RESOLVE_ALL = "tests/cli/test_resolve_command_all.py"
REPEATS = "tests/planning/test_repeats.py"

PLAN_MUTATIONS = (
    Mutation(
        "requests that nobody chose are closed, too",
        "cli/resolve_command.py",
        "    rows = [row for row in unknown if _is_selected(row, args)]\n",
        "    rows = unknown\n",
        (RESOLVE_ALL,),
        first="test_some_are_chosen_by_time_and_reason",
    ),
    Mutation(
        "a message that the table holds as well is another text",
        "planning/changed_texts.py",
        "            again[again] = ~are_in(table.sorted(), halves[again])\n",
        "",
        (REPEATS,),
        first="test_several_messages_in_one_table_are_meant",
    ),
    Mutation(
        "an earlier attempt of the task counts as another task",
        "ledger/preview.py",
        "self._of_others = and_(self._of_others, request.c.claimant_id.not_in(ours))",
        "del ours",
        (REPEATS,),
        first="test_attempts_of_the_same_task_in_the_same_run_do_not_count",
    ),
    Mutation(
        "an outage is closed without a question",
        "cli/resolve_command.py",
        "    _confirm_closing(args, rows)\n    closed: dict",
        "    closed: dict",
        (RESOLVE_ALL,),
        first="test_nothing_is_closed_without_a_yes",
    ),
    Mutation(
        "an outcome that comes meanwhile ends the closing of all others",
        "ledger/decisions.py",
        "                with suppress(InputError):  # it has an outcome since\n                    closed",
        "                if request_id:\n                    closed",
        (RESOLVE_ALL,),
        first="test_an_outcome_that_arrives_during_the_question_stays",
    ),
    Mutation(
        "an outage is closed in one transaction",
        "ledger/decisions.py",
        "    for some in in_pieces(request_ids, REQUESTS_AT_ONCE):\n",
        "    for some in [request_ids]:\n",
        (RESOLVE_ALL,),
        first="test_the_ledger_is_held_for_some_requests_at_a_time",
    ),
)
