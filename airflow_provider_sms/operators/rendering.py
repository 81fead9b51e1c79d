"""Rendering, where it differs from Airflow's: queries, and texts in files.

Airflow renders a :class:`SqlSource` in place, so that a retry in the same process would find the text of the attempt
before. Here a copy is rendered.

Airflow reads a file for every templated argument that ends like a file name, even for a text that only happens to, and
for a path in ``source``. Here a file is read only for ``message``, and only if the message is a single word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.redaction import is_to_be_rendered
from airflow_provider_sms.execution.templates import RendersTexts
from airflow_provider_sms.hooks.sql_source import SqlSource
from airflow_provider_sms.masking import mask_numbers_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jinja2
    from airflow.providers.common.compat.sdk import BaseOperator, Context

    _Base = BaseOperator
else:
    _Base = object

EXTENSIONS = (".txt", ".j2")
_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_BYTE_ORDER_MARK = "\ufeff"


def is_text_file(message: Any) -> bool:
    """Return whether a message names a file: a single word with such a suffix, and not a URL.

    Templates in the name may contain spaces.
    """
    if not isinstance(message, str) or not message.endswith(EXTENSIONS):
        return False
    name = _EXPRESSION.sub("", message)
    return "://" not in name and not any(map(str.isspace, name))


class RendersTemplates(RendersTexts, _Base):
    """Render queries, with their ``.sql`` files, and the file that ``message`` names.

    A base beside Airflow's ``BaseOperator``.
    """

    template_ext: Sequence[str] = EXTENSIONS
    message: Any = None

    def resolve_template_files(self) -> None:
        """Refuse a missing file when Airflow loads the DAG; the task reads the file when it runs.

        :raises InputError: names the file.
        """
        if is_text_file(self.message) and not is_to_be_rendered(self.message):
            from jinja2 import TemplateNotFound

            environment = self.get_template_env()
            try:
                _loader_of(environment, self.message).get_source(environment, self.message)
            except TemplateNotFound:
                raise InputError(
                    f"message: there is no file {self.message!r} beside the DAG's file, or in the DAG's "
                    "template_searchpath. To send this word itself, put a blank after it"
                ) from None
        self.prepare_template()

    def render_template(
        self,
        content: Any,
        context: Context,
        jinja_env: jinja2.Environment | None = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """Render a query as a copy, read the file that the message names, and render any other value as it is.

        :raises AirflowFailException: a template is wrong, or names what is not there; a retry would fail as well.
        """
        from jinja2 import TemplateSyntaxError, UndefinedError

        environment = jinja_env or self.get_template_env()
        if isinstance(content, SqlSource) and id(content) not in (seen_oids or ()):
            return content.rendered(lambda value: self.render_template(value, context, environment), environment)
        try:
            rendered = super().render_template(content, context, environment, seen_oids)
            if content is not self.message or not is_text_file(content) or id(content) in (seen_oids or ()):
                return rendered
            source, _, _ = _loader_of(environment, str(rendered)).get_source(environment, str(rendered))
            text = super().render_template(source, context, environment)
        except (UndefinedError, TemplateSyntaxError) as error:
            where = "message: " if content is self.message else ""
            has_columns = where and hasattr(self, "destination_column")
            hint = "; in message, single braces name a column: {first_name}" if has_columns else ""
            raise AirflowFailException(
                f"{where}a template cannot be rendered: {mask_numbers_in(str(error.message))}. Double braces hold a "
                f"value of Airflow's, such as {{{{ ds }}}}{hint}"
            ) from None
        # Editors end a file with a line break, and may begin it with a mark that would double the cost of each text.
        return text.removeprefix(_BYTE_ORDER_MARK).strip() if isinstance(text, str) else text


def _loader_of(environment: jinja2.Environment, name: str) -> jinja2.BaseLoader:
    """Return the loader that looks up files.

    :raises InputError: there is none, because the task is in no DAG.
    """
    if environment.loader is None:
        raise InputError(f"message: {name} cannot be looked up outside a DAG")
    return environment.loader
