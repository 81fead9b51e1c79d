"""The service's answers to the requests of a campaign, as they are kept in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, func, select

from airflow_provider_sms.sending.earlier import of_task
from airflow_provider_sms.sending.schema import claimant, message, request

if TYPE_CHECKING:
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.sending.claims import Claimant
    from airflow_provider_sms.sending.store import Store


class KeptResponses:
    """Reads those answers, as they were received: JSON. Each call reads the ledger anew.

    :param campaign_id: in the ledger.
    :param who: a try of the task instance whose requests are meant.
    """

    def __init__(self, store: Store, campaign_id: int, who: Claimant) -> None:
        self._store = store
        self._campaign_id = campaign_id
        self._who = who

    def count(self) -> int:
        """Count the answers to this task instance's requests in this campaign, of all its tries.

        :raises LedgerError: when the ledger cannot be read.
        """
        query = select(func.count()).select_from(request.join(claimant)).where(self._of_this_task)
        with self._store.read() as connection:
            return int(connection.execute(query).scalar_one())

    def first(self, limit: int) -> list[str]:
        """Give the answers to this task instance's requests in this campaign, of all its tries, in request order.

        :param limit: how many at most.
        :raises LedgerError: when the ledger cannot be read.
        """
        query = (
            select(request.c.response)
            .select_from(request.join(claimant))
            .where(self._of_this_task)
            .order_by(request.c.id)
            .limit(limit)
        )
        with self._store.read() as connection:
            return [response for (response,) in connection.execute(query)]

    def to(self, key: bytes) -> str | None:
        """Give the answer to the request that holds a message, whoever made it; None where there is none.

        :raises LedgerError: when the ledger cannot be read.
        """
        query = (
            select(request.c.response)
            .select_from(message.join(request, request.c.id == message.c.request_id))
            .where(message.c.campaign_id == self._campaign_id, message.c.message_key == key)
        )
        with self._store.read() as connection:
            response: str | None = connection.execute(query).scalar()
        return response

    @property
    def _of_this_task(self) -> ColumnElement[bool]:
        return and_(request.c.campaign_id == self._campaign_id, request.c.response.is_not(None), of_task(self._who))
