"""The commands in Airflow's audit log, with the user of the operating system and the machine.

Apart from the console, because each module of commands needs it.
"""

from __future__ import annotations

import getpass
import os
import socket
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.hooks.audit_log import audited

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from airflow_provider_sms.hooks.audit_log import AuditedAct


def audited_command(event: str, **details: Any) -> AbstractContextManager[AuditedAct]:
    """Record what a command does; see :func:`~airflow_provider_sms.hooks.audit_log.audited`.

    :param event: for example ``sms.pause``.
    :param details: ids of what it changes or shows, without numbers.
    """
    return audited(event, user=user_name(), details={"host": socket.gethostname(), **details})


def user_name() -> str:
    """Return the name of the user of the operating system."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"  # a user in a container may have no name
