"""The durable ledger of claims: all SQL, on SQLite and PostgreSQL."""
