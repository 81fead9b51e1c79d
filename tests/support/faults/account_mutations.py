"""Defects of what the ledger tells of an account: from it follows which unknown requests were charged."""

from __future__ import annotations

from support.faults.mutation import DECISIONS, Mutation

ACCOUNTS = "tests/ledger/test_account_history.py"
BALANCES = "tests/ledger/test_balances.py"

ACCOUNT_MUTATIONS = (
    Mutation(
        "the command counts as accepted what the service left out",
        "ledger/statistics.py",
        "            func.sum(case((added, TAKEN))),\n",
        "            func.sum(case((added, request.c.submitted))),\n",
        ("tests/cli/test_read_commands.py",),
        first="test_show_and_list_count_messages_alike",
    ),
    Mutation(
        "a request is settled as soon as its response was lost",
        "ledger/account_history.py",
        "            return settles_at\n        return row.deadline\n",
        "            return settles_at\n        return row.finished_at or row.deadline\n",
        (ACCOUNTS,),
    ),
    Mutation(
        "a request that was seen to be charged for may be charged for until it is settled",
        "ledger/account_history.py",
        "kept.verdict == CHARGED and settles_at is not None",
        "False",
        (ACCOUNTS,),
    ),
    Mutation(
        "what is under way is not known to be",
        "ledger/account_history.py",
        "            in_flight=row.state == CLAIMED,\n",
        "            in_flight=False,\n",
        (ACCOUNTS,),
    ),
    Mutation(
        "a person's decision proves what was charged",
        "ledger/account_history.py",
        "        is_sure = closed_by is None or closed_by == BALANCE\n",
        "        is_sure = True\n",
        (ACCOUNTS,),
    ),
    Mutation(
        "what the balance has proved before counts as a person's decision",
        "ledger/account_history.py",
        "        is_sure = closed_by is None or closed_by == BALANCE\n",
        "        is_sure = closed_by is None\n",
        (ACCOUNTS,),
    ),
    Mutation(
        "expected prices count, whatever the service charges",
        "ledger/account_history.py",
        "        if not prices or row.least_price != row.most_price:\n",
        "        if True:\n",
        (ACCOUNTS,),
    ),
    Mutation(
        "a free request counts as one with a price",
        "ledger/account_history.py",
        "[Decimal(0) if free else Decimal(price) for *both, free in found for price in both]",
        "[Decimal(price) for *both, free in found for price in both]",
        (ACCOUNTS,),
    ),
    Mutation(
        "a response without prices takes the expected ones away",
        "ledger/transitions.py",
        'KEPT = ("least_price", "most_price")\n',
        "KEPT: tuple[str, ...] = ()\n",
        (ACCOUNTS,),
    ),
    Mutation(
        "a response that is not believed tells the balance",
        "ledger/transitions.py",
        '        **({"remaining_balance": None} if outcome.state == UNKNOWN else {}),\n',
        "",
        (ACCOUNTS,),
    ),
    Mutation(
        "a balance that was never read counts as pre-paid",
        "ledger/account_history.py",
        "    return None if last is None else last.amount is None\n",
        "    return last is not None and last.amount is None\n",
        (ACCOUNTS,),
    ),
    Mutation(
        "charges at the edge of a history are left out",
        "ledger/account_history.py",
        "            elif start < settled and row.claimed_at < end:\n",
        "            elif seen is None and start < settled and row.claimed_at < end:\n",
        (ACCOUNTS,),
    ),
    Mutation(
        "requests from before a history are left out, however long they stay open",
        "ledger/account_history.py",
        "        long_ago = start - LONGEST_REQUEST_SECONDS\n",
        "        long_ago = start\n",
        (ACCOUNTS,),
    ),
    Mutation(
        "what a purge forgets is blamed on others",
        "ledger/purge.py",
        "    close_history(store, old.campaign_id, old.last_activity)\n",
        "",
        (ACCOUNTS,),
    ),
    Mutation(
        "what a purge forgets is blamed on later requests",
        "ledger/account_history.py",
        "        _forget_observations(store, key, last_activity)\n",
        "        pass\n",
        (ACCOUNTS,),
    ),
    Mutation(
        "a purge keeps a balance that its charges overlap",
        "ledger/account_history.py",
        "request.c.claimed_at <= until",
        "request.c.finished_at <= until",
        (ACCOUNTS,),
    ),
    Mutation(
        "a purge keeps readings for ever",
        "ledger/balances.py",
        "_TABLES = ((balance, balance.c.observed_at), (balance_reading, balance_reading.c.read_at))\n",
        "_TABLES = ((balance, balance.c.observed_at),)\n",
        (BALANCES,),
    ),
    Mutation(
        "the balance overrules an outcome",
        "ledger/decisions.py",
        "        .where(request.c.id == request_id, request.c.state == UNKNOWN)\n",
        "        .where(request.c.id == request_id)\n",
        (DECISIONS,),
    ),
)
