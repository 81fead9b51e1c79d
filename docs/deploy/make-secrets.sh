#!/bin/sh
# Prints the environment file of compose.yaml: (umask 077; sh make-secrets.sh > .env)
set -eu

key() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

for name in POSTGRES_PASSWORD AIRFLOW_DB_PASSWORD LEDGER_PASSWORD REDIS_PASSWORD AIRFLOW_SECRET_KEY \
  AIRFLOW_JWT_SECRET SMS_TOKEN; do
  echo "$name=$(key)"
done
echo "AIRFLOW_FERNET_KEY=$(head -c 32 /dev/urandom | base64 | tr '+/' '-_')"
