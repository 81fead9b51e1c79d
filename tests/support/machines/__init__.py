"""Airflow with Celery workers on this machine that are as far apart as two machines: see ``engine``."""
