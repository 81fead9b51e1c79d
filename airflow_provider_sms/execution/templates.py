"""Templates, rendered so that a text is as it was written.

With ``render_template_as_native_obj`` jinja reads each rendered text as a literal of Python, whether or not it holds a
template: ``1e5`` becomes 100000.0, and ``'x'`` loses its quotes. Here a text stays text, and only a template that is
one expression alone, such as ``{{ params.groups }}``, becomes the expression's value.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2
    from airflow.providers.common.compat.sdk import Context
    from jinja2 import nodes


class RendersTexts:
    """Render texts by these rules; a base beside Airflow's ``BaseOperator`` or ``BaseNotifier``."""

    def render_template(
        self,
        content: Any,
        context: Context,
        jinja_env: jinja2.Environment | None = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """Render a value as Airflow does, but a text as :func:`render_text` does."""
        # Airflow lists values that are not to be rendered, such as those of a mapped task.
        if not isinstance(content, str) or id(content) in (seen_oids or ()):
            return super().render_template(content, context, jinja_env, seen_oids)  # type: ignore[misc]
        environment = jinja_env or self.get_template_env()  # type: ignore[attr-defined]
        return render_text(content, context, environment, native=getattr(self, "render_template_as_native_obj", None))


def render_text(text: str, context: Context, environment: jinja2.Environment, *, native: bool | None = None) -> Any:
    """Return what a template stands for.

    :param native: whether a template that is one expression becomes the expression's value; None means as the
        environment does.
    """
    from jinja2 import Undefined, nodes
    from jinja2.nativetypes import NativeEnvironment

    source = environment.parse(text)
    expression = _only_expression(source) if native or isinstance(environment, NativeEnvironment) else None
    if expression is not None:
        source = nodes.Template([nodes.Assign(nodes.Name("value", "store"), expression, lineno=1)], lineno=1)
    template = environment.from_string(source)
    # As Airflow does: in version 2 to read each of the context's values would warn.
    values = copy(context)
    values.update({name: value for name, value in template.globals.items() if name not in values})  # type: ignore[typeddict-item]
    scope = environment.context_class(environment, values, template.name, template.blocks)  # type: ignore[arg-type]
    pieces = list(template.root_render_func(scope))
    if expression is None:
        return "".join(map(str, pieces))
    value = scope.vars["value"]
    return str(value) if isinstance(value, Undefined) else value  # raises, or is empty, as the DAG wants it


def _only_expression(template: nodes.Template) -> nodes.Expr | None:
    """Return the expression that is the whole of a template; None if there is more, or none."""
    from jinja2.nodes import Output, TemplateData

    output = template.body[0] if len(template.body) == 1 else None
    if not isinstance(output, Output) or len(output.nodes) != 1 or isinstance(output.nodes[0], TemplateData):
        return None
    return output.nodes[0]
