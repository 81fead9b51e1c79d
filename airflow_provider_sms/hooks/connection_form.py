"""The connection's form, for the versions of Airflow that ask the hook for it: those before 3.2."""

from __future__ import annotations

from typing import Any

from airflow_provider_sms.get_provider_info import get_provider_info


def form_fields() -> dict[str, Any]:
    """Give the fields of ``extra`` as widgets, made of what the provider's metadata says of them.

    All are lines of text, whatever their type: the settings are read from text as well, and a whole-number widget
    would cut the fraction off a timeout.

    :raises ImportError: there are no widgets in this environment; Airflow shows the form without these fields then.
    """
    from flask_appbuilder.fieldwidgets import BS3TextFieldWidget
    from flask_babel import lazy_gettext
    from wtforms import StringField
    from wtforms.validators import Optional, any_of

    def widget(field: dict[str, Any]) -> Any:
        schema = field["schema"]
        default = schema.get("default")
        return StringField(
            lazy_gettext(field["label"]),
            validators=[Optional(), *([any_of(schema["enum"])] if "enum" in schema else [])],
            description=field["description"],
            default=None if default is None else str(default),
            widget=BS3TextFieldWidget(),
        )

    return {name: widget(field) for name, field in _declared()["conn-fields"].items()}


def form_behaviour() -> dict[str, Any]:
    """Give what the form does with Airflow's own fields: hides some, names others."""
    declared = _declared()["ui-field-behaviour"]
    return {key.replace("-", "_"): value for key, value in declared.items()}


def _declared() -> dict[str, Any]:
    (connection_type,) = get_provider_info()["connection-types"]
    return dict(connection_type)
