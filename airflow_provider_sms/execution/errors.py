"""What Airflow is told of an attempt that fails: the words, and whether a retry could help."""

from __future__ import annotations

import logging
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_sms.exceptions import ServiceError, SmsError
from airflow_provider_sms.formatting import counted
from airflow_provider_sms.sending.stop_conditions import is_out_of_credit

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)

SINCE_THE_WAIT = ". This is about the time since the attempt's last wait: what it sent before is in its summary"


class FailedError(SmsError):
    """Not every message was accepted, or the report could not be written."""

    def __init__(self, words: str, *, transient: bool) -> None:
        super().__init__(words)
        self.transient = transient


@contextmanager
def airflow_errors(*, resumed: bool = False) -> Iterator[None]:
    """Raise every error of the block as one of Airflow's, which tells whether a retry could help.

    :param resumed: whether the attempt goes on after a wait, before which it may have sent something.
    """
    try:
        yield
    except AirflowException:
        raise
    except Exception as error:  # noqa: BLE001  # a source can fail in any way, and its error may quote a row
        log_unforeseen(error)
        failure_class = AirflowFailException if is_permanent(error) else AirflowException
        since = SINCE_THE_WAIT if resumed and not isinstance(error, FailedError) else ""
        # The cause of an error of this package, such as a driver's error, tells more; any other may quote a row.
        cause = error.__cause__ if isinstance(error, SmsError) else None
        raise failure_class(describe(error) + since) from cause


def is_permanent(error: BaseException) -> bool:
    """Return whether a retry would fail as well unless somebody changes something; credit may arrive without that."""
    return isinstance(error, SmsError) and not error.transient and not is_out_of_credit(error)


def describe(error: BaseException) -> str:
    """Return an error of this package in words; of any other error only the type, since its words may quote a row."""
    if isinstance(error, ServiceError) and error.place is not None:
        tries = f", {counted(error.attempts, 'try', 'tries')}" if error.attempts > 1 else ""
        return f"{error} ({error.place}{tries})"
    return str(error) if isinstance(error, SmsError) else f"{type(error).__name__} (see the log above)"


def log_unforeseen(error: Exception | None) -> None:
    """Log the place of an error that is not from this package, without its words, which may quote a row."""
    if error is not None and not isinstance(error, SmsError):
        log.error("%s at:\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
