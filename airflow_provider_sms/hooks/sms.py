"""The hook: each method makes one request to the service, with an Airflow connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from airflow_provider_sms.exceptions import NoConnectionError, SmsError
from airflow_provider_sms.hooks.connection import ClientSettings, client_settings
from airflow_provider_sms.masking import MOST_OF_AN_ID, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sms.messages.message import Message
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import Balance, SendResponse


class SmsHook(BaseHook):
    """Call the Messaging Service through a connection of type ``sms``.

    Each method makes one request. A request that may have been sent is never repeated, but the hook keeps no record:
    if a message must not go out twice, use :class:`~airflow_provider_sms.operators.sms.BulkSmsOperator`, which keeps a
    ledger.

    :param sms_conn_id: the connection; the documentation lists its fields.
    """

    conn_name_attr = "sms_conn_id"
    default_conn_name = "sms_default"
    conn_type = "sms"
    hook_name = "SMS"

    def __init__(self, sms_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sms_conn_id = sms_conn_id
        self._client: SmsClient | None = None

    def get_settings(self) -> ClientSettings:
        """Return the settings of the connection.

        :raises InputError: a field is missing or wrong; the error names it.
        :raises NoConnectionError: the connection was not found; a retry may find it.
        """
        try:
            connection = self.get_connection(self.sms_conn_id)
        except AirflowNotFoundException:
            name = quoted(str(self.sms_conn_id), MOST_OF_AN_ID)  # a notifier's template may render to another type
            raise NoConnectionError(
                f"Connection {name} does not exist", "Otherwise create a connection of type sms"
            ) from None
        return client_settings(connection, connection.extra_dejson)

    def get_conn(self) -> SmsClient:
        """Return the client, created on first use."""
        if self._client is None:
            self._client = self.get_settings().client()
        return self._client

    def send_bulk(
        self,
        messages: Sequence[Message | Mapping[str, str]],
        *,
        send_options: Mapping[str, Any] | None = None,
    ) -> SendResponse:
        """Send 1 to 100 messages in one request.

        :param messages: each a :class:`~airflow_provider_sms.messages.message.Message`, or a mapping with the keys
            ``Content`` and ``Destination``; a destination is digits with country code.
        :param send_options: the service's Send Options, passed through; None means none.
        :raises InputError: there are no messages, or more than 100.
        :raises ServiceError: ``may_have_been_sent`` says whether the service may have processed the request.
        """
        return self.get_conn().send_bulk(messages, send_options=send_options)

    def send_group(
        self, message: str, groups: Sequence[str] | str, *, send_options: Mapping[str, Any] | None = None
    ) -> SendResponse:
        """Send one text to groups that the service knows.

        :param message: the text.
        :param groups: one name, or a list of names, at least one, as for
            :class:`~airflow_provider_sms.operators.sms.GroupSmsOperator`.
        :param send_options: the service's Send Options, passed through; None means none.
        :raises InputError: there is no text or no group, or a name could miss its group; nothing was sent.
        :raises ServiceError: ``may_have_been_sent`` says whether the service may have processed the request.
        """
        return self.get_conn().send_group(message, groups, send_options=send_options)

    def get_balance(self) -> Balance:
        """Return the account's balance; free of charge.

        :raises ServiceError: there is no usable response.
        """
        return self.get_conn().get_balance()

    def test_connection(self) -> tuple[bool, str]:
        """Read the balance, and return whether that worked, with a message; never raise."""
        try:
            balance = self.get_balance()
        except SmsError as error:
            return False, str(error)
        except Exception as error:  # noqa: BLE001  # the test button shows a message, never a traceback
            return False, f"{type(error).__name__} while reading the balance"
        if balance.post_paid:
            return True, "Connected: a post-paid account"
        return True, f"Connected: the balance is {balance.amount}"
