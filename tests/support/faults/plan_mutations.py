"""Defects between what was seen and what is done: a table that was checked, requests that were counted."""

from __future__ import annotations

from support.faults.mutation import Mutation

CONSOLE = "tests/cli/test_console.py"
REPEATS = "tests/planning/test_repeats.py"

PLAN_MUTATIONS = (
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
        "requests are closed without a question",
        "cli/resolve_command.py",
        "    _confirm_closing(args, rows)\n    closed: list",
        "    closed: list",
        (CONSOLE,),
        first="test_nothing_but_yes_is_yes",
    ),
)
