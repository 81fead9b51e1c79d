"""Sources, numbers and texts: pure functions from a table to messages, without Airflow, HTTP or a database."""
