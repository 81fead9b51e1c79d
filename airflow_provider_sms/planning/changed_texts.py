"""Changed texts and repeats: recipients who have had a text of the campaign, and would now get another one.

A retry whose message holds the time of day has new keys, which the ledger has never seen: it would text everybody
twice. So before the first request the table is compared with the claims of earlier attempts of its task instance.

A *repeat* is a text from another task, or from another run of the task. It may be intended, so it is only counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.messages.keys import key_bytes, key_halves
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.recipients.columns import are_in, distinct, integers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.holders import CampaignReader
    from airflow_provider_sms.messages.spool import CheckedSpool
    from airflow_provider_sms.stop_flag import StopFlag

Messages: TypeAlias = "Callable[[], Iterator[tuple[bytes | memoryview, npt.NDArray[np.int64]]]]"
"""Yields the messages of a table: their keys, one after the other, and their destinations as numbers."""


def messages_of(spool: CheckedSpool, most: Status = Status.ACCEPTED) -> Messages:
    """Return the messages of the checked rows up to a status; the default leaves none out but suppressed ones."""

    def read() -> Iterator[tuple[memoryview, npt.NDArray[np.int64]]]:
        for rows in spool.batches():
            _, messages = rows.where(rows.statuses <= most)
            yield key_bytes(messages.column("key")), integers(messages.column("destination").cast(pa.int64()))

    return read


def refuse_changed_texts(messages: Messages, ledger: CampaignLedger, stop: StopFlag) -> None:
    """Refuse to send where recipients whose messages an earlier attempt claimed would now get another text.

    A recipient may have several messages in a table. So a text counts as changed only where a message that an earlier
    attempt of this task instance claimed is no longer in the table, or is of another campaign, and the same recipient
    has a message in the table that nobody claimed. A first attempt does not read the table.
    """
    pieces, table, changed = [], None, 0
    for halves, destinations, is_here in ledger.earlier():
        stop.require_running()
        table = _keys_of(messages) if table is None else table
        pieces.append(destinations[~(is_here & are_in(table, halves))])
    gone = distinct(pieces)
    for keys, numbers in messages() if len(gone) else ():
        stop.require_running()
        of_same_people = key_halves(keys)[are_in(gone, numbers)]
        changed += int(np.count_nonzero(ledger.look(of_same_people.tobytes()).are_free))
    if changed:
        raise InputError(
            f"{changed} {by_count(changed, 'message to a recipient', 'messages to recipients')} that an earlier "
            f"attempt of this task claimed in this run {by_count(changed, 'has', 'have')} another text, other key "
            "columns or another campaign now, so people could be texted twice. Nothing was sent by this attempt. Is "
            "there a now() or the like in the message or in the campaign's name, or did a column change? To continue, "
            "restore the text and the campaign. For the next run, say in key_columns what identifies a message besides "
            "its number. If a second text is intended, send it in a new run, under a new campaign"
        )


def count_repeats(campaign: CampaignReader, spool: CheckedSpool, stop: StopFlag) -> int:
    """Return how many of the people about to be texted have had another text of the campaign.

    A text counts if another task or run sent it, or may have, and the table does not hold it as well: a person with
    several messages in one table gets them on purpose.
    """
    if not campaign.has_others():
        return 0
    people = distinct(numbers for _, numbers in messages_of(spool, Status.AGAIN)())
    table = _keys_of(messages_of(spool))
    have_had = np.zeros(len(people), np.bool_)
    for halves, destinations in campaign.blocks_of_others():
        stop.require_running()
        others = destinations[are_in(people, destinations) & ~are_in(table, halves)]
        have_had[np.searchsorted(people, others)] = True
    return int(np.count_nonzero(have_had))


def _keys_of(messages: Messages) -> npt.NDArray[np.int64]:
    """Return the first halves of the keys of a table, in ascending order."""
    return distinct(key_halves(keys)[:, 0].copy() for keys, _ in messages())
