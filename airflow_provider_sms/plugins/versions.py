"""What this Airflow can show."""

from __future__ import annotations

from importlib.metadata import version

_MAJOR, _MINOR = (int(number) for number in version("apache-airflow").split(".")[:2])

SHOWS_PAGES = (_MAJOR, _MINOR) >= (3, 1)
"""Whether it has places for pages of plugins, and knows a person who looks at one by a cookie: since 3.1."""
