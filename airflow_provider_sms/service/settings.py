"""The settings of a client, checked before it is made."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from airflow_provider_sms.arguments import Arguments, flag, number
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.service.elapsed import MAX_TIMEOUT
from airflow_provider_sms.service.responses import Billing

if TYPE_CHECKING:
    from typing_extensions import Self


def _base_url(url: str | None, info: ValidationInfo) -> str | None:
    """Return a base URL without a trailing slash; an error does not quote it, since it may hold a password."""
    if url is None:
        return None
    name = "host" if info.field_name == "base_url" else info.field_name
    url = url.strip()
    try:
        parts = urlsplit(url)
        # An empty port is the colon of a scheme with one slash: http:/example.com would be the host http.
        usable = bool(parts.hostname) and parts.port != 0 and not parts.netloc.endswith(":")
    except ValueError:
        usable = False
    if not usable or any(c.isspace() for c in url):
        raise InputError(f"{name} is not a URL: write it like https://rest.example.com/v1")
    if parts.scheme not in ("http", "https"):
        raise InputError(f"{name} must begin with https:// or http://, not with {parts.scheme}://")
    if parts.username is not None or "?" in url or "#" in url:
        raise InputError(f"{name} must be a URL without user name, query and fragment")
    return url.rstrip("/")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine: ``localhost``, or an address of 127.0.0.0/8 or ``::1``.

    No other name is, whatever it resolves to: which machine answers to it is decided elsewhere, and may change.

    :param host: in lower case, without port or brackets.
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def fits_a_header(value: str) -> bool:
    """Return whether a header can carry a token."""
    return value.isascii() and value.isprintable() and " " not in value


def _verify(value: Any) -> Any:
    if str(value).strip().lower() == "true":
        return True
    # An empty path is refused, too: requests would take it for "do not verify".
    if not (isinstance(value, str) and value and Path(value).exists()):
        raise ValueError
    return value


_SECONDS = f"a number of seconds above 0 and at most {MAX_TIMEOUT}"
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=MAX_TIMEOUT), BeforeValidator(number)]


class Settings(Arguments):
    """The settings of a client; what has a default may be text, as in a connection's URI. The repr holds no secrets.

    :param base_url: for example ``https://rest.example.com/v1``. A trailing slash does not matter.
    :param token: the bearer token; None means that it is fetched with ``client_id`` and ``client_secret``.
    :param client_id: for ``{base_url}/Authentication``; None means that ``token`` is used.
    :param client_secret: the secret of ``client_id``.
    :param balance_url: base URL of ``Balance`` where it differs; None means ``base_url``.
    :param allow_http: whether numbers, texts and the token may go unencrypted to another machine.
    :param timeout: seconds to wait for a response.
    :param connect_timeout: seconds to make a connection. A request ends within the sum of both: see
        :class:`~airflow_provider_sms.service.transport.Transport`.
    :param verify: True, or the path of a CA bundle by which TLS certificates are verified.
    :param billing: ``auto``: a balance of exactly 1000000 is a post-paid account's; or ``prepaid``, ``postpaid``.
    :raises InputError: names the field.
    """

    named: ClassVar[str] = "extra "
    shows_values: ClassVar[bool] = False

    base_url: Annotated[str, AfterValidator(_base_url)]
    token: str | None = Field(repr=False)
    client_id: str | None = Field(repr=False)
    client_secret: str | None = Field(repr=False)

    balance_url: Annotated[str | None, AfterValidator(_base_url)] = Field(
        None, description="text: the base URL of Balance"
    )
    allow_http: Annotated[bool, BeforeValidator(flag)] = Field(default=False, description="true or false")
    # Sending up to 100 messages may take the service a while.
    timeout: Seconds = Field(30.0, description=_SECONDS)
    # Nothing has been sent by then, so a retry is safe.
    connect_timeout: Seconds = Field(5.0, description=_SECONDS)
    verify: Annotated[Literal[True] | str, BeforeValidator(_verify)] = Field(
        default=True,
        description="true, or the path of a CA bundle; certificate checks cannot be switched off",
    )
    billing: Billing = Field("auto", description="one of auto, prepaid, postpaid")

    @model_validator(mode="after")
    def _check_secrets(self) -> Self:
        """Refuse credentials that no header can carry, and a URL to which they would go unencrypted over a network."""
        if self.token is not None and not fits_a_header(self.token):
            raise InputError("the token has characters that no header may carry: a space, or a line end?")
        if self.client_id is not None and ":" in self.client_id:
            raise InputError("the client id has a colon, which HTTP Basic cannot carry")
        for name, url in (("host", self.base_url), ("balance_url", self.balance_url or self.base_url)):
            parts = urlsplit(url)
            if parts.scheme == "http" and not self.allow_http and not is_loopback(parts.hostname or ""):
                raise InputError(
                    f"{name} is an http:// address of another machine, so everybody on the way there could read the "
                    "token, the numbers and the texts. Use https://, or set extra 'allow_http' to true if only "
                    "machines that you trust are on the way"
                )
        return self
