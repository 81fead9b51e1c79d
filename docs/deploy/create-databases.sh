#!/bin/sh
# Makes Airflow's database, and the ledger's with its roles. PostgreSQL's image runs this once, on an empty volume.
set -eu

psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=postgres \
  --set=airflow="$AIRFLOW_DB_PASSWORD" --set=owner="$LEDGER_OWNER_PASSWORD" --set=task="$LEDGER_TASK_PASSWORD" <<'SQL'
CREATE ROLE airflow LOGIN PASSWORD :'airflow';
CREATE DATABASE airflow OWNER airflow;
CREATE ROLE sms_owner LOGIN PASSWORD :'owner';
CREATE ROLE sms_task LOGIN PASSWORD :'task';
CREATE DATABASE sms OWNER sms_owner;
\connect sms
CREATE SCHEMA sms AUTHORIZATION sms_owner;
ALTER DATABASE sms SET search_path = sms;
GRANT USAGE ON SCHEMA sms TO sms_task;
-- Tables and sequences that sms_owner makes later. docs/several-machines.md has the exact rights of a task.
ALTER DEFAULT PRIVILEGES FOR ROLE sms_owner IN SCHEMA sms GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO sms_task;
ALTER DEFAULT PRIVILEGES FOR ROLE sms_owner IN SCHEMA sms GRANT USAGE ON SEQUENCES TO sms_task;
SQL
