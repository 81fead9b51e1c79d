"""Airflow on several machines, and what may happen to a machine, a link or a service: see ``engine``."""
