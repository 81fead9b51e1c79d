"""An Airflow connection of type ``sms`` → the settings of a client: a pure function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

from airflow_provider_sms.exceptions import InputError

if TYPE_CHECKING:
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import Billing

DEFAULT_TIMEOUT = 30.0
"""Seconds to wait for a response: sending up to 100 messages may take the service a while."""
DEFAULT_CONNECT_TIMEOUT = 5.0
"""Seconds to wait for a connection; nothing has been sent by then, so a retry is safe."""
BILLING = ("auto", "prepaid", "postpaid")


class ConnectionLike(Protocol):
    """The fields of Airflow's connection that the hooks read."""

    conn_id: str
    conn_type: str | None
    host: str | None
    login: str | None
    password: str | None
    schema: str | None
    port: int | None


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of a client; its repr holds no secrets.

    :param conn_id: the connection that they come from, for an error.
    :param base_url: with its scheme.
    :param token: the bearer token; None means that the client fetches one.
    :param client_id: with ``client_secret``, fetches a token; None means that a token is given.
    :param balance_url: base URL of ``Balance``; None means ``base_url``.
    :param timeout: seconds to wait for a response.
    :param connect_timeout: seconds to wait for a connection.
    :param verify: True, or the path of a CA bundle.
    :param billing: ``auto``, ``prepaid`` or ``postpaid``.
    :param assumes_https: whether the connection names no scheme.
    """

    conn_id: str = field(compare=False)
    base_url: str
    token: str | None = field(repr=False)
    client_id: str | None = field(repr=False)
    client_secret: str | None = field(repr=False)
    balance_url: str | None
    timeout: float
    connect_timeout: float
    verify: bool | str
    billing: Billing
    assumes_https: bool = field(default=False, compare=False)

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
        """Return the connection and a host for an error, without path, login and token.

        :param url: a URL on that host; None means ``base_url``.
        """
        return f"connection {self.conn_id!r}, host {urlsplit(url or self.base_url).netloc.rpartition('@')[2]}"

    def client(self, *, pool_size: int = 1) -> SmsClient:
        """Return a new client.

        :param pool_size: threads that use the client at once.
        :raises InputError: the client rejects a setting; the error names the connection and the setting.
        """
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
            raise InputError(f"{_name(self.conn_id)}: {error}") from None


def _name(conn_id: str) -> str:
    return f"Connection {conn_id!r}"


def client_settings(connection: ConnectionLike, extra: Mapping[str, Any]) -> ClientSettings:
    """Return the settings that a connection holds.

    :param connection: its host is the base URL, its password the token or, with a login, the API secret.
    :param extra: the connection's extra; values may be text, as in a connection's URI.
    :raises InputError: a field is missing or wrong; the error names it, and says what to put there.
    """
    name = _name(connection.conn_id)
    if not isinstance(extra, Mapping):
        raise InputError(f'{name}: extra must be an object of JSON, such as {{"timeout": 30}}')
    if not connection.host:
        raise InputError(f"{name} has no host: put the base URL there, for example https://rest.example.com/v1")
    if not connection.password:
        what = "the API secret" if connection.login else "the bearer token"
        raise InputError(f"{name} has no password: put {what} there")
    base_url, balance_url = _base_url(name, connection), extra.get("balance_url") or None
    if balance_url is not None and not isinstance(balance_url, str):
        raise InputError(f"{name}: extra 'balance_url' must be text: the base URL of Balance")
    allows_http = _allows_http(name, extra)
    _check_url(name, "host", base_url, allows_http=allows_http)
    if balance_url is not None:
        _check_url(name, "balance_url", balance_url, allows_http=allows_http)
    return ClientSettings(
        conn_id=connection.conn_id,
        base_url=base_url,
        token=None if connection.login else connection.password,
        client_id=connection.login or None,
        client_secret=connection.password if connection.login else None,
        balance_url=balance_url,
        timeout=_seconds(name, extra, "timeout", DEFAULT_TIMEOUT),
        connect_timeout=_seconds(name, extra, "connect_timeout", DEFAULT_CONNECT_TIMEOUT),
        verify=_verify(name, extra),
        billing=_billing(name, extra),
        assumes_https="://" not in connection.host and not connection.schema,
    )


def _base_url(name: str, connection: ConnectionLike) -> str:
    host = str(connection.host)
    if "://" in host:
        scheme, _, rest = host.partition("://")
    else:
        scheme, rest = "https", host
    if connection.schema in ("http", "https"):
        scheme = str(connection.schema)
    elif connection.schema:
        raise InputError(f"{name}: put the whole base URL with its path into host, and leave schema empty")
    address, slash, path = rest.partition("/")
    # Colons within brackets are those of an IPv6 address.
    if connection.port is not None and ":" not in address.rpartition("]")[2]:
        address = f"{address}:{connection.port}"
    return f"{scheme}://{address}{slash}{path}"


def _check_url(name: str, field_name: str, url: str, *, allows_http: bool) -> None:
    """Refuse a URL that is not one, or to which the token would go unencrypted over a network.

    :param allows_http: whether it may go there unencrypted.
    :raises InputError: it is not a usable URL; or it begins with ``http://``, and its host is another machine.
    """
    from airflow_provider_sms.service.inputs import checked_url, is_loopback

    parts = urlsplit(checked_url(url, f"{name}: {field_name}"))
    if parts.scheme == "http" and not allows_http and not is_loopback(parts.hostname or ""):
        raise InputError(
            f"{name}: {field_name} is an http:// address of another machine, so everybody on the way there could read "
            "the token, the numbers and the texts. Use https://, or set extra 'allow_http' to true if only machines "
            "that you trust are on the way"
        )


def _allows_http(name: str, extra: Mapping[str, Any]) -> bool:
    value = extra.get("allow_http")
    text = "" if value is None else str(value).strip().lower()
    if text not in ("", "true", "false"):
        raise InputError(f"{name}: extra 'allow_http' must be true or false")
    return text == "true"


def _seconds(name: str, extra: Mapping[str, Any], field_name: str, default: float) -> float:
    value = extra.get(field_name)
    if value is None or value == "":
        return default
    try:
        seconds = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise InputError(f"{name}: extra {field_name!r} must be a number of seconds above 0")
    return seconds


def _verify(name: str, extra: Mapping[str, Any]) -> bool | str:
    value = extra.get("verify")
    if value is None or value is True or (isinstance(value, str) and value.strip().lower() in ("", "true")):
        return True
    if isinstance(value, str) and value.strip().lower() not in ("false", "no", "0"):
        return value
    raise InputError(
        f"{name}: extra 'verify' must be true or the path of a CA bundle; certificate checks cannot be switched off"
    )


def _billing(name: str, extra: Mapping[str, Any]) -> Billing:
    value = str(extra.get("billing") or BILLING[0])
    if value not in BILLING:
        raise InputError(f"{name}: extra 'billing' must be one of {', '.join(BILLING)}")
    return cast("Billing", value)
