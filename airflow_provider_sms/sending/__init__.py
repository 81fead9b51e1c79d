"""The engine: it claims messages, posts requests and records outcomes. No SQL, no Airflow."""
