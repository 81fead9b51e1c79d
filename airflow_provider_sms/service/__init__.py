"""The Messaging Service's REST interface over requests, without Airflow."""
