"""Texts that Airflow sends when something happens to a task or a DAG."""
