"""The Messaging Service's REST interface, without Airflow."""
