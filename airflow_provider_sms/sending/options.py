"""How to send."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_provider_sms.sending.backoff import Backoff


@dataclass(frozen=True, slots=True)
class SendingOptions:
    """How to send.

    :param chunk_size: messages a request, 1 to 100.
    :param concurrency: requests in flight at once, at least 1.
    :param max_requests_per_second: None for no limit.
    :param resend_unknown: post messages again whose outcome is unknown: at least once instead of at most once.
    :param resend_requests: the unknown requests whose messages a person wants to be posted again.
    :param backoff: waits between attempts of a request that was surely not processed.
    """

    chunk_size: int = 100
    concurrency: int = 4
    max_requests_per_second: float | None = None
    resend_unknown: bool = False
    resend_requests: frozenset[int] = frozenset()
    backoff: Backoff = field(default_factory=Backoff)

    def resends(self, request_id: int) -> bool:
        """Say whether what an unknown request holds is to be posted again."""
        return self.resend_unknown or request_id in self.resend_requests
