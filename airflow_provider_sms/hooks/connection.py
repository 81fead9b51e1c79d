"""An Airflow connection of type ``sms`` → the settings of a client."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.service.settings import Settings

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import Balance


class ClientSettings(Settings):
    """The settings of a client, with the connection that they come from."""

    conn_id: str

    @property
    def account(self) -> str:
        """The account, as a ledger identifies it: a digest of the base URL and the credentials.

        Two connections to the same account have the same digest, whatever their names. It reveals no secret: a client
        id is not one, and a token is too long to be guessed.
        """
        parts = urlsplit(self.base_url)
        address = parts._replace(scheme=parts.scheme.lower(), netloc=parts.netloc.lower()).geturl()
        credential = self.token if self.client_id is None else self.client_id
        return blake2b(f"{address}\n{credential}".encode(), digest_size=16, person=b"sms-account").hexdigest()

    def place(self, url: str | None = None) -> str:
        """Return the connection and the host of a URL, else of the base URL, without path, login and token."""
        return f"connection {self.conn_id!r}, host {urlsplit(url or self.base_url).netloc}"

    def client(self, *, pool_size: int = 1) -> SmsClient:
        """Return a new client for so many threads at once."""
        from airflow_provider_sms.service.client import SmsClient

        return SmsClient(self, pool_size=pool_size)

    def read_balance(self) -> Balance:
        """Return the account's balance, read with a client of its own."""
        with self.client() as client:
            return client.get_balance()


def client_settings(connection: Connection, extra: Mapping[str, Any]) -> ClientSettings:
    """Return the settings that a connection holds; an error names the connection and the field."""
    name = f"Connection {connection.conn_id!r}"
    if not isinstance(extra, Mapping):
        raise InputError(f'{name}: extra must be an object of JSON, such as {{"timeout": 30}}')
    if not connection.host:
        raise InputError(f"{name} has no host: put the base URL there, for example https://rest.example.com/v1")
    if not connection.password:
        what = "the API secret" if connection.login else "the bearer token"
        raise InputError(f"{name} has no password: put {what} there")
    if connection.schema and connection.schema not in ("http", "https"):
        raise InputError(f"{name}: put the whole base URL with its path into host, and leave schema empty")
    optional = [name for name, field in Settings.model_fields.items() if not field.is_required()]
    try:
        return ClientSettings(
            conn_id=connection.conn_id,
            base_url=_base_url(connection, connection.host),
            token=None if connection.login else connection.password,
            client_id=connection.login or None,
            client_secret=connection.password if connection.login else None,
            **{name: extra[name] for name in optional if extra.get(name) not in (None, "")},
        )
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _base_url(connection: Connection, host: str) -> str:
    """Return the host with the scheme and the port that may be in fields of their own."""
    scheme, _, rest = host.partition("://") if "://" in host else ("", "", host)
    address, slash, path = rest.partition("/")
    # Colons within brackets are those of an IPv6 address.
    if connection.port is not None and ":" not in address.rpartition("]")[2]:
        address = f"{address}:{connection.port}"
    return f"{connection.schema or scheme or 'https'}://{address}{slash}{path}"


def stored_connection(conn_id: str) -> Connection | None:
    """Return a connection in a process whose task SDK does not read Airflow's database; None if there is none."""
    from airflow.configuration import ensure_secrets_loaded

    for backend in ensure_secrets_loaded():
        # As in Airflow, a secrets backend that cannot be reached does not stop the search in the next one.
        with suppress(Exception):
            connection: Connection | None = backend.get_connection(conn_id=conn_id)
            if connection is not None:
                return connection
    return None
