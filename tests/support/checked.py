"""Messages as a send gets them: of a table that was checked."""

from __future__ import annotations

from collections import Counter

from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.messages.spool import Status


def check_into(counts, ledger, messages):
    """Count what the check of a table settles, and return the messages that are left to the send.

    These are the first row of each message, unless an earlier leg of the attempt has sent it.
    """
    first = {message.key: message for message in reversed(messages)}
    held = ledger.holders(list(first)) if ledger.earlier_legs else {}
    sent = {key for key, holder in held.items() if holder.state == ACCEPTED and holder.of_earlier_leg}
    counts.add_checked(Counter({Status.DUPLICATE: len(messages) - len(first), Status.ACCEPTED: len(sent)}))
    return [message for key, message in reversed(first.items()) if key not in sent]
