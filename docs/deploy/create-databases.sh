#!/bin/sh
# Makes Airflow's database, and the ledger's with its role. PostgreSQL's image runs this once, on an empty volume.
set -eu

psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=postgres \
  --set=airflow="$AIRFLOW_DB_PASSWORD" --set=sms="$LEDGER_PASSWORD" <<'SQL'
CREATE ROLE airflow LOGIN PASSWORD :'airflow';
CREATE DATABASE airflow OWNER airflow;
CREATE ROLE sms LOGIN PASSWORD :'sms';
CREATE DATABASE sms OWNER sms;
SQL
