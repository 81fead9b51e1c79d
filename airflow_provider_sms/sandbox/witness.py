"""What arrived: records of requests and accepted messages, and the file that outlives the sandbox."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from airflow_provider_sms.sandbox.contract import Kind
    from airflow_provider_sms.sandbox.faults import FaultKind

Operation = Literal["bulk", "group", "balance", "authentication"]


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request to the service, and its response.

    :param number: 1 for the first request since the start; the witness has the same number.
    :param operation: ``bulk``, ``group``, ``balance`` or ``authentication``.
    :param path: path of the URL.
    :param status: HTTP status of the response; None when the connection was dropped instead.
    :param error: the first error code when the service refused the request; None otherwise.
    :param fault: kind of the fault that the request met; ``none`` when it met no fault.
    :param submitted: messages in the request; 0 when its body was refused.
    :param accepted: messages that were accepted.
    :param event_id: event id of the send response; None when there is none.
    :param send_options: ``SendOptions`` as received; None when the request had none.
    """

    number: int
    operation: Operation
    path: str
    status: int | None
    error: str | None
    fault: FaultKind
    submitted: int
    accepted: int
    event_id: int | None
    send_options: dict[str, Any] | None = field(repr=False)


@dataclass(slots=True)
class AcceptedMessage:
    """One accepted message.

    :param event_id: event id of the send response.
    :param request: number of the request.
    :param index: position of the message in the request, from 0.
    :param destination: digits with country code.
    :param content: the text.
    :param kind: ``bulk`` or ``group``.
    :param parts: SMS parts of the text.
    :param at: when the message was accepted, UTC.
    """

    event_id: int
    request: int
    index: int
    destination: str = field(repr=False)
    content: str = field(repr=False)
    kind: Kind
    parts: int
    at: datetime


class Witness:
    """A file of JSON lines, one for each accepted message, written before the client receives the response.

    :param path: the file. An existing file is appended to. A new one, which will hold numbers and texts, is readable
        by its owner only.
    :raises OSError: the file cannot be opened for writing.
    """

    def __init__(self, path: Path | str) -> None:
        self._file = open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115 - Path.open has no opener; close() is there

    def append(self, messages: Iterable[AcceptedMessage]) -> None:
        """Write a line for each message. They outlive a killed sandbox."""
        self._file.write(b"".join(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE) for message in messages))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
