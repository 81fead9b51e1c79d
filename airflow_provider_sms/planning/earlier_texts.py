"""Repeats: people who have had another text of the campaign, from another task or another run of this task.

A *duplicate* is something else, the same message in two rows of a table: :mod:`~airflow_provider_sms.messages.keys`.

A text is part of a message, so another wording is another message, and a campaign that is sent again in other words
texts everybody again. Within a run :mod:`~airflow_provider_sms.planning.changed_texts` refuses that. Between runs it is
counted, since it may be intended.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from airflow_provider_sms.exceptions import StoppedError
from airflow_provider_sms.messages.integer_set import DiskBackedIntegers, are_in

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.preview import CampaignPreview
    from airflow_provider_sms.planning.changed_texts import TableKeys
    from airflow_provider_sms.stop_flag import StopFlag


def count_repeats(
    preview: CampaignPreview, table: TableKeys, people: DiskBackedIntegers[np.int64], stop: StopFlag
) -> int:
    """Return how many people have had another text of the campaign.

    A text counts if another task or run sent it, or may have, and the table does not hold it as well: a person with
    several messages in one table gets them on purpose. The messages of the campaign are read once, a block at a time,
    and only where others hold any.

    :param table: the messages of the table.
    :param people: the numbers that are about to be texted.
    :param stop: ends the count early.
    :raises StoppedError: the count was stopped.
    :raises LedgerError: the ledger cannot be read.
    :raises OSError: there is no room in the folder for temporary files.
    """
    if not len(people):
        return 0
    with DiskBackedIntegers(np.int64) as found, closing(preview.blocks_of_others()) as blocks:
        for halves, destinations in blocks:
            if stop.is_set():
                raise StoppedError("Told to stop while the rows were checked; nothing was sent")
            again = are_in(people.sorted(), destinations)
            again[again] = ~are_in(table.sorted(), halves[again])
            found.add(destinations[again])
        return found.count_distinct()
