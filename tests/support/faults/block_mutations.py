"""Defects of how messages are read ahead, ordered and taken: a text that reaches somebody else, a row that is lost."""

from __future__ import annotations

from support.faults.mutation import LEDGER, PENDING, SENDER, Mutation

BLOCKS = "tests/messages/test_blocks.py"

BLOCK_MUTATIONS = (
    Mutation(
        "texts stay where they were while numbers are ordered",
        "messages/blocks.py",
        "_joined(self._contents, chosen)",
        "_joined(self._contents)",
        (BLOCKS,),
    ),
    Mutation(
        "keys are ordered and numbers are not",
        "messages/blocks.py",
        "_joined(self._destinations, chosen)",
        "_joined(self._destinations)",
        (BLOCKS,),
    ),
    Mutation(
        "of a message's rows the last one counts",
        "messages/blocks.py",
        "        duplicate[1:] = (ordered[1:] == ordered[:-1]).all(axis=1)\n",
        "        duplicate[:-1] = (ordered[1:] == ordered[:-1]).all(axis=1)\n",
        (BLOCKS,),
    ),
    Mutation(
        "a message that comes twice in a request is posted twice",
        "ledger/claims.py",
        "position in places.items() if",
        "position in ((key, position) for position, key in enumerate(chunk.keys)) if",
        (LEDGER,),
    ),
    Mutation(
        "what is left of a block when sending ends is not counted",
        "sending/pending.py",
        "        self._counts.not_sent += sum(map(len, self._spans))\n",
        "",
        (PENDING, SENDER),
    ),
    Mutation(
        "what lies between held messages is passed over",
        "sending/pending.py",
        "                if position > start:\n",
        "                if position < start:\n",
        (PENDING, SENDER),
    ),
    Mutation(
        "an error of the source reads like its end",
        "sending/threads.py",
        "            end = error\n",
        "            end = None\n",
        ("tests/sending/test_threads.py", SENDER),
    ),
)
