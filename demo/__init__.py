"""The demonstration that ``make demo`` runs: a table of people is texted from a real Airflow, and nobody twice."""
