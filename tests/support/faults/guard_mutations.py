"""Defects of what guards a later try, and of what people decide."""

from __future__ import annotations

from support.faults.mutation import Mutation

ATTEMPTS = "tests/ledger/test_attempts.py"
CHANGED_TEXTS = "tests/planning/test_changed_texts.py"
DECISIONS = "tests/ledger/test_decisions.py"
TRACE = "tests/execution/test_enter.py"

GUARD_MUTATIONS = (
    Mutation(
        "a later try takes any ledger",
        "execution/enter.py",
        "    if (noted is None and is_first and not resumed) or has_trace(store, who, of_attempt=resumed):\n",
        "    if True:\n",
        (TRACE,),
    ),
    Mutation(
        "a trace of any task will do",
        "ledger/attempts.py",
        " attempt.c.task_id == who.task_id,",
        "",
        (ATTEMPTS,),
    ),
    Mutation(
        "a superseded try goes on",
        "execution/enter.py",
        "    except Exception as error:\n        raise StoppedError(",
        "    except ValueError as error:\n        raise StoppedError(",
        (TRACE,),
    ),
    Mutation(
        "a changed text is no reason to stop",
        "planning/changed_texts.py",
        "    if changed:\n",
        "    if False:\n",
        (CHANGED_TEXTS,),
    ),
    Mutation(
        "a second text to a recipient counts as a changed one",
        "planning/changed_texts.py",
        "pieces.append(destinations[~(is_here & are_in(table, halves))])",
        "pieces.append(destinations)",
        (CHANGED_TEXTS,),
    ),
    Mutation(
        "what a person calls not sent stays held",
        "ledger/decisions.py",
        "        move(connection, request_id)\n",
        "",
        (DECISIONS,),
    ),
    Mutation(
        "a claim that may be under way is resolved",
        "ledger/decisions.py",
        "    require_unknown(row)\n",
        "",
        (DECISIONS,),
    ),
)
