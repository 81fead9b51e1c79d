"""One attempt of a task inside Airflow, from its session with the ledger to its summary."""
