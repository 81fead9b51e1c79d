"""Templates within a :class:`SqlSource`, which is an argument of an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sms.hooks.sql_source import SqlSource

if TYPE_CHECKING:
    import jinja2
    from airflow.providers.common.compat.sdk import BaseOperator, Context

    _Base = BaseOperator
else:
    _Base = object


class RendersSqlSources(_Base):
    """Render the templates of a :class:`SqlSource`, and its ``.sql`` file; a base beside Airflow's ``BaseOperator``.

    Airflow itself would render them in place. A retry in the same process would find the text of the attempt before.
    """

    def render_template(
        self,
        content: Any,
        context: Context,
        jinja_env: jinja2.Environment | None = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """Render a value, as Airflow does it."""
        if not isinstance(content, SqlSource) or id(content) in (seen_oids or ()):
            return super().render_template(content, context, jinja_env, seen_oids)
        environment = jinja_env or self.get_template_env()
        return content.rendered(lambda value: self.render_template(value, context, environment), environment)
