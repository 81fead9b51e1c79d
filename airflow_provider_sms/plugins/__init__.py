"""Pages in Airflow's web server, on which people see campaigns and act on them."""

from __future__ import annotations

PREFIX = "/sms"
"""Where the pages are, below Airflow's own address."""
