"""The demonstration of ``make demo``: a real Airflow texts a table of people, and nobody twice."""
