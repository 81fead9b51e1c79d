"""Errors: every class that the package raises, besides Airflow's own; all of them are a :class:`SmsError`.

No message text, full number or token is in any of them.
"""

from __future__ import annotations


class SmsError(Exception):
    """The root of the tree."""

    may_have_been_sent: bool = False
    """Whether the service may have processed the request."""
    transient: bool = False
    """Whether the same may succeed later without anybody changing anything."""


class InputError(SmsError, ValueError):
    """An argument or the data is wrong; this was found before anything was sent."""


class SourceError(InputError):
    """The source of recipients cannot be opened or read."""


class SourceUnavailableError(SourceError):
    """A source's database cannot be reached or ended the query, or there is no room for its rows; nothing was sent."""

    transient = True


class NoConnectionError(InputError):
    """Airflow did not find a connection; it says the same where a secrets backend or its database failed.

    :param what: the connection that is missing, in words.
    :param remedy: what to do if it is.
    """

    transient = True

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(
            f"{what}, or it cannot be read (is its JSON valid?), or its look-up may have failed: Airflow says the same "
            f"where a secrets backend or its database fails, and then a retry helps. {remedy}"
        )


class ColumnError(InputError):
    """The source lacks a column that an argument names."""


class TemplateError(InputError):
    """The text template cannot be parsed or does not fit the columns."""


class InvalidRowsError(InputError):
    """Some rows cannot be texted, and the caller did not allow leaving them out."""


class LimitError(InputError):
    """The plan has more rows, a higher cost, longer texts or more people with another text than the caller allows."""


class ServiceError(SmsError):
    """One request to the service did not succeed.

    :param message: the failure, in words without numbers, texts or tokens.
    :param status: HTTP status of the response; None where no response came.
    :param code: the service's own error code, for example ``InsufficientCredits``; None where the response has none.
    :param retry_after: seconds that the service asked to wait (RFC 9110 section 10.2.3); None where it did not.
    """

    place: str | None = None
    """The connection and the host that were called, in words; None if they were not noted."""
    attempts: int = 1
    """How often the same request was made, each time in vain."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after


class NotSentError(ServiceError):
    """No byte of the request was written: no connection could be made, no token came, or too little time was left."""

    transient = True


class ThrottledError(ServiceError):
    """The service did not process the request: 429, or 503 with an ``errorCode`` of the service in its body."""

    transient = True


class AuthenticationError(ServiceError):
    """The token or the credentials are not valid: 401, or 403 in response to the client id and secret."""


class RefusedError(ServiceError):
    """The response was 3xx or 4xx, but not 303, 408 or 499: the service turned the request down unprocessed."""


class UnknownOutcomeError(ServiceError):
    """The request was written, and no response says what became of it: it may have been processed.

    No response, a broken one, a 200 that breaks the contract, 303, 408, 499, 5xx, and a 503 without the service's own
    error in its body, which gateways also send after passing the request on. The table of statuses and reasons is in
    :mod:`airflow_provider_sms.service.errors`.
    """

    may_have_been_sent = True
    transient = True


class LedgerError(SmsError):
    """The ledger cannot be opened, read or committed to; nothing is sent without it."""

    transient = True


class LedgerAwayError(LedgerError):
    """The ledger's server cannot be reached, is starting up or is shutting down: trying again may succeed."""


class LedgerVersionError(LedgerError):
    """The ledger was written by a version of this package that is newer, or too old to upgrade from."""

    transient = False


class LedgerLostError(LedgerError):
    """The ledger has lost requests that were committed to it: it went back to an earlier state."""

    transient = False


class LedgerBusyError(LedgerAwayError):
    """A commit could not be made, and had no effect: trying again is safe.

    Another process has kept the lock for as long as this one waits, or the server has undone the transaction.
    """


class CreditError(SmsError):
    """The balance does not cover the messages; credit may arrive later."""

    transient = True


class TooManyErrorsError(SmsError):
    """The service refused, or called faulty, a larger share of messages than the caller allows."""


class OutageError(SmsError):
    """One response of the service after another was lost; the service may respond again later."""

    transient = True


class StoppedError(SmsError):
    """The task was told to stop before anything was sent."""

    transient = True
