"""Every error that the package raises, below Airflow's own.

.. code-block:: text

    SmsError
    ├── InputError                   the caller's arguments or data; nothing was sent
    │   ├── SourceError                 the source cannot be read
    │   │   └── ChangedSourceError         it changed after it was checked; the rest was not sent
    │   ├── ColumnError                 a column that is needed is not there
    │   ├── TemplateError               the text template is wrong
    │   ├── InvalidRowsError            rows that cannot be texted
    │   └── LimitError                  the plan is beyond a limit that the caller set
    ├── ServiceError                 one request to the service did not succeed
    │   ├── NotSentError                the request never left this machine
    │   ├── ThrottledError              429, or 503 in the service's own words: it did not process the request
    │   ├── AuthenticationError         401
    │   ├── RefusedError                3xx and 4xx, but for 303, 408 and 499
    │   └── UnknownOutcomeError         it may have been processed: never resent by itself
    ├── LedgerError                  no durable claim can be made, so nothing is sent
    │   ├── LedgerVersionError          the ledger has a version that this package cannot use
    │   └── LedgerLostError             the ledger has lost what was committed to it
    ├── CreditError                  the credit does not cover what is to be sent; nothing more was
    ├── TooManyErrorsError           the service refuses too many messages, so sending ended early
    ├── OutageError                  one answer after the other was lost, so sending ended early
    └── StoppedError                 the task was told to stop before anything was sent

No message text, full number or token is in any of them.
"""

from __future__ import annotations


class SmsError(Exception):
    """The root of the tree."""

    may_have_been_sent: bool = False
    """Whether the service may have processed the request that this is about."""
    transient: bool = False
    """Whether the same may succeed later without anyone changing anything."""


class InputError(SmsError, ValueError):
    """An argument or the data is wrong, which was seen before anything was sent."""


class SourceError(InputError):
    """The source of recipients cannot be opened or read."""


class ChangedSourceError(SourceError):
    """The source holds other rows than those that were checked and planned; nothing of them is sent."""

    transient = True


class ColumnError(InputError):
    """The source lacks a column that an argument names."""


class TemplateError(InputError):
    """The text template cannot be parsed or does not fit the columns."""


class InvalidRowsError(InputError):
    """Some rows cannot be texted, and the caller asked for none to be left out."""


class LimitError(InputError):
    """What is to be sent is more, dearer or worse than the caller allows."""


class ServiceError(SmsError):
    """One request to the service did not succeed.

    :param message: what happened, in words without numbers, texts or tokens.
    :param status: HTTP status of the answer; None where there was no answer.
    :param code: the service's own error code, for example ``InsufficientCredits``; None where it gave none.
    :param retry_after: seconds that the service asked to wait (RFC 9110 section 10.2.3); None where it did not.
    """

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
    """No byte of the request was written: name resolution, connecting or the TLS handshake failed."""

    transient = True


class ThrottledError(ServiceError):
    """The service did not process the request: 429, or 503 with an ``errorCode`` of the service in its body."""

    transient = True


class AuthenticationError(ServiceError):
    """The service answered 401: the token or the credentials are not valid."""


class RefusedError(ServiceError):
    """The service answered 3xx or 4xx, but not 303, 408 or 499: it turned the request down without processing it."""


class UnknownOutcomeError(ServiceError):
    """The request was written, and what came back does not say what became of it: it may have been processed.

    No response, a broken one, a 200 that is not the contract's, 303, 408, 499, 5xx, and a 503 without the service's own
    error in its body, which gateways also say after they passed the request on. Which status means what, and why, is
    the table of :mod:`airflow_provider_sms.service.errors`.
    """

    may_have_been_sent = True
    transient = True


class LedgerError(SmsError):
    """The ledger cannot be opened, read or committed to; nothing is sent without it."""


class LedgerVersionError(LedgerError):
    """The ledger was written by another version of this package, one that is newer or too old to be upgraded."""


class LedgerLostError(LedgerError):
    """The ledger has lost requests that were committed to it: it went back to an earlier state."""


class CreditError(SmsError):
    """The balance does not cover what is to be sent; credit may arrive by itself."""

    transient = True


class TooManyErrorsError(SmsError):
    """The service refused or called faulty a larger share of messages than the caller allows."""


class OutageError(SmsError):
    """One answer of the service after the other was lost; the service may answer again later."""

    transient = True


class StoppedError(SmsError):
    """The task was told to stop before anything was sent."""

    transient = True
