"""The promise: the ledger of claims and the sender that obeys it, without Airflow."""
