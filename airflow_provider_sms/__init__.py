"""Apache Airflow provider that texts a table of people, each exactly as often as intended."""

__version__ = "0.1.0"
