"""Apache Airflow provider that texts a table of people, each exactly as often as intended.

Not there on purpose: approval within a send (Airflow's ``ApprovalOperator`` between a plan and a send), caps of how
often a person is texted (``suppress`` with a query), a command that sends (a DAG with ``dry_run``), numbers on pages
(``airflow-sms who``), an audit log of its own (Airflow's), delivery receipts and inbound texts.
"""

__version__ = "0.1.0"
