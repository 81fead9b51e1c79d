"""The Messaging Service's REST interface, built on ``requests``, without Airflow."""
