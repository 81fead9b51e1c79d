"""Before the first request: the scan of every row, the plan, its limits and its price. No Airflow."""
