"""What sending costs, against goals, in real Airflow tasks: ``make bench``."""
