"""The form of a connection, for Airflow before 3.2, which asks the hook for it."""

from __future__ import annotations

from typing import Any

from airflow_provider_sms.get_provider_info import get_provider_info


def form_fields() -> dict[str, Any]:
    """Return the fields of ``extra`` as widgets, built from the provider's metadata.

    All are text fields, whatever the setting's type: settings are read from text as well, and a widget for whole
    numbers would truncate a timeout.

    :raises ImportError: this environment has no widgets; Airflow then shows the form without these fields.
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
    """Return which of Airflow's own fields the form hides, and which it renames."""
    declared = _declared()["ui-field-behaviour"]
    return {key.replace("-", "_"): value for key, value in declared.items()}


def _declared() -> dict[str, Any]:
    (connection_type,) = get_provider_info()["connection-types"]
    return dict(connection_type)
