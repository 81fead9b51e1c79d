"""An Airflow connection of type ``sms`` → the settings of a client."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from airflow_provider_sms.arguments import Arguments, flag, number
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.service.elapsed import MAX_TIMEOUT
from airflow_provider_sms.service.responses import Billing

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection
    from typing_extensions import Self

    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import Balance


def _verify(value: Any) -> Any:
    found = {"true": True, "false": False}.get(str(value).strip().lower(), value)
    if found is not True and not isinstance(found, str):
        raise InputError(
            "extra verify must be true or the path of a CA bundle; certificate checks cannot be switched off"
        )
    return found


_SECONDS = f"a number of seconds above 0 and at most {MAX_TIMEOUT}"
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=MAX_TIMEOUT), BeforeValidator(number)]


class Extra(Arguments):
    """The extra of a connection; each value may be text, as in a connection's URI."""

    named: ClassVar[str] = "extra "
    shows_values: ClassVar[bool] = False

    balance_url: str | None = Field(None, description="text: the base URL of Balance")
    allow_http: Annotated[bool, BeforeValidator(flag)] = Field(default=False, description="true or false")
    # Sending up to 100 messages may take the service a while.
    timeout: Seconds = Field(30.0, description=_SECONDS)
    # Nothing has been sent by then, so a retry is safe.
    connect_timeout: Seconds = Field(5.0, description=_SECONDS)
    verify: Annotated[Literal[True] | str, BeforeValidator(_verify)] = True
    billing: Billing = Field("auto", description="one of auto, prepaid, postpaid")


class ClientSettings(Extra):
    """The settings of a client; its repr holds no secrets. With a client id and secret, the client fetches a token."""

    conn_id: str
    base_url: str
    assumes_https: bool
    token: str | None = Field(repr=False)
    client_id: str | None = Field(repr=False)
    client_secret: str | None = Field(repr=False)

    @model_validator(mode="after")
    def _check_urls(self) -> Self:
        """Refuse what is no URL, and one to which the token would go unencrypted over a network."""
        from airflow_provider_sms.service.inputs import checked_url, is_loopback

        for name, url in (("host", self.base_url), ("balance_url", self.balance_url or self.base_url)):
            parts = urlsplit(checked_url(url, name))
            if parts.scheme == "http" and not self.allow_http and not is_loopback(parts.hostname or ""):
                raise InputError(
                    f"{name} is an http:// address of another machine, so everybody on the way there could read the "
                    "token, the numbers and the texts. Use https://, or set extra 'allow_http' to true if only "
                    "machines that you trust are on the way"
                )
        return self

    @property
    def account(self) -> str:
        """The account, as a ledger identifies it: a digest of the base URL and the credentials.

        Two connections to the same account have the same digest, whatever their names. It reveals no secret: a client
        id is not one, and a token is too long to be guessed.
        """
        parts = urlsplit(self.base_url.rstrip("/"))
        address = parts._replace(scheme=parts.scheme.lower(), netloc=parts.netloc.lower()).geturl()
        credential = self.token if self.client_id is None else self.client_id
        return blake2b(f"{address}\n{credential}".encode(), digest_size=16, person=b"sms-account").hexdigest()

    def place(self, url: str | None = None) -> str:
        """Return the connection and the host of a URL, else of the base URL, without path, login and token."""
        return f"connection {self.conn_id!r}, host {urlsplit(url or self.base_url).netloc}"

    def client(self, *, pool_size: int = 1) -> SmsClient:
        """Return a new client for so many threads at once; an error names the connection."""
        from airflow_provider_sms.service.client import SmsClient

        try:
            return SmsClient(
                self.base_url,
                token=self.token,
                client_id=self.client_id,
                client_secret=self.client_secret,
                balance_url=self.balance_url,
                timeout=self.timeout,
                connect_timeout=self.connect_timeout,
                verify=self.verify,
                billing=self.billing,
                pool_size=pool_size,
                assumes_https=self.assumes_https,
            )
        except InputError as error:
            raise InputError(f"Connection {self.conn_id!r}: {error}") from None

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
    try:
        return ClientSettings(
            conn_id=connection.conn_id,
            base_url=_base_url(connection, connection.host),
            assumes_https="://" not in connection.host and not connection.schema,
            token=None if connection.login else connection.password,
            client_id=connection.login or None,
            client_secret=connection.password if connection.login else None,
            **{name: extra[name] for name in Extra.model_fields if extra.get(name) not in (None, "")},
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
