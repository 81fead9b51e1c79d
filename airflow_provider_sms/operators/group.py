"""The operator that texts groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.operators.base import SmsOperatorBase
from airflow_provider_sms.operators.options import GroupOptions, check_loaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.operators.options import OnUnknown


class GroupSmsOperator(SmsOperatorBase):
    """Text groups that the service knows, once.

    A retry never texts a group twice: like a request of :class:`BulkSmsOperator`, the send is first claimed in the
    ledger. Returns the service's response, even if an earlier attempt or run of the campaign sent the text; the XCom
    ``responses`` is a list with that response, if the task itself sent the text.

    :param message: the text, without columns: ``{first_name}`` is refused, and a literal brace is written twice, as for
        :class:`BulkSmsOperator`. (templated)
    :param groups: one name, or a list of names, at least one. (templated)
    :param send_options: the service's Send Options, passed through. (templated)
    :param campaign: the campaign's name; within a campaign the text goes to the groups at most once. None means
        ``{dag_id}/{task_id}/{run_id}``. (templated)
    :param on_unknown: what happens to a send whose response was lost. ``fail``: the task fails, and the text is not
        sent again; ``reconcile``: the task closes the send if the balance tells its outcome, and fails otherwise: a
        send that was charged for counts as accepted, and one that was not is made again. This assumes that a pre-paid
        account is charged when the service takes a request, and that nobody else spends from it meanwhile, which is
        checked as far as the figures allow; ``resend``: the text is sent again, at the risk of texting people twice.
    :param sms_conn_id: the connection to send with. (templated)
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
    options_model = GroupOptions

    def __init__(
        self,
        *,
        # Whom does it text, and what?
        message: str,
        groups: Sequence[str] | str,
        send_options: dict[str, Any] | None = None,
        campaign: str | None = None,
        # What if something goes wrong?
        on_unknown: OnUnknown = "fail",
        # Which account and ledger?
        sms_conn_id: str = SmsHook.default_conn_name,
        ledger_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            send_options=send_options,
            campaign=campaign,
            on_unknown=on_unknown,
            sms_conn_id=sms_conn_id,
            ledger_conn_id=ledger_conn_id,
            **kwargs,
        )
        self.message = message
        self.groups = groups
        check_loaded(self, self.options_model)

    def send(self, context: Context, event: Any) -> dict[str, Any] | None:  # noqa: ARG002  # it never waits
        """Send, and return the service's response."""
        from airflow_provider_sms.execution.group import text_groups

        return text_groups(self, context)
