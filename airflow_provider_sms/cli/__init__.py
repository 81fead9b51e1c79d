"""Commands for people who run campaigns, within ``airflow`` and as ``airflow-sms``."""
