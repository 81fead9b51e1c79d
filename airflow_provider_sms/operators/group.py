"""The operator that texts groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.options import GroupOptions
from airflow_provider_sms.operators.base import SmsOperatorBase
from airflow_provider_sms.operators.question_options import read_question_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sms.execution.options import SendingTask


class GroupSmsOperator(SmsOperatorBase):
    """Text groups that the service knows, once.

    A retry never texts a group twice: the send is claimed in the ledger first, as one of
    :class:`BulkSmsOperator` is. Returns the service's response, also where an earlier attempt or run of the campaign
    sent the text; the XCom ``responses`` is a list with it.

    :param message: the text. (templated)
    :param groups: at least one name. (templated)
    :param send_options: the service's Send Options, passed through. (templated)
    :param sms_conn_id: the connection. (templated)
    :param campaign: within it the text goes to the groups at most once. None means ``{dag_id}/{task_id}/{run_id}``.
        (templated)
    :param on_unknown: what happens to a send whose response was lost. ``fail``: the task fails, and the text is not
        sent again; ``reconcile``: the task closes by itself what the balance proves, and fails otherwise. A send that
        was charged for counts as accepted, and one that was not is made again. That assumes that a pre-paid account is
        charged when the service takes a request, and that nobody else spends from it meanwhile, which is checked as far
        as the numbers tell; ``resend``: the text is sent again, at the risk of texting people twice; ``ask``: the task
        waits, without a slot, for a person to decide in Airflow's required actions (Airflow 3.1 and newer).
    :param settle_seconds: for ``reconcile``, seconds after a lost response in which the service may still charge for
        its request: the task waits as long before it takes the send for not charged. None means until the deadline of
        the request's claim.
    :param approvers: users of Airflow who may answer that question, each by id, or as ``{"id": …, "name": …}``. None
        means all whom Airflow lets answer.
    :param four_eyes: whether the person who triggered the run may not answer it (Airflow 3.1.2 and newer).
    :param approval_notifiers: one of Airflow's notifiers, or a list of them, that say that the question waits. None
        means that nobody is notified.
    :param raw_responses: keep all of the service's responses, in XComs and in the ledger. Otherwise both leave out
        ``Sample``, the text of one person's message, and mask the numbers in ``Faults``.
    :param ledger_conn_id: an Airflow connection to PostgreSQL that holds the ledger. None means ``[sms]
        ledger_conn_id``, else a file on this machine. (templated)
    """

    template_fields: Sequence[str] = (
        "message",
        "groups",
        "send_options",
        "campaign",
        "sms_conn_id",
        "ledger_conn_id",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"send_options": "json"}
    ui_color = "#e3f2ee"

    def __init__(self, *, message: str, groups: Sequence[str] | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message
        self.groups = groups

    def send(self, task: SendingTask) -> dict[str, Any] | None:
        """Send, and return the service's response."""
        from airflow_provider_sms.execution.group_attempt import text_groups

        return text_groups(task, self.read_options)

    def read_options(self) -> GroupOptions:
        """Check the rendered arguments, and return them.

        :raises InputError: names the argument.
        """
        from airflow_provider_sms.messages.keys import check_groups
        from airflow_provider_sms.messages.texts import MISSING_WORDS, tidy_text

        self.check_arguments()
        groups = [self.groups] if isinstance(self.groups, str) else list(self.groups)
        check_groups(groups)
        if not isinstance(self.message, str) or not self.message.strip():
            raise InputError("message must be a text that is not empty")
        message = tidy_text(self.message)
        if message in MISSING_WORDS:
            raise InputError(f"message is {message!r}: was there no value to render it from?")
        question = read_question_options(self)
        return GroupOptions(
            message, groups, self.send_options, self.on_unknown, self.settle_seconds, question, self.raw_responses
        )
