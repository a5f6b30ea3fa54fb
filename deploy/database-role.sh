#!/bin/sh
# Make the role of the service and its database: no superuser, and nothing but this database is its own.
# The image of PostgreSQL runs this once, when it makes its files.
set -eu
password=$(cat /run/secrets/database_password)
psql --set=ON_ERROR_STOP=1 --set=password="$password" --username=postgres --dbname=postgres --no-psqlrc <<'END'
CREATE ROLE lapwing LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 400
  PASSWORD :'password';
CREATE DATABASE lapwing OWNER lapwing;
REVOKE ALL ON DATABASE lapwing, postgres, template1 FROM PUBLIC;
END
psql --set=ON_ERROR_STOP=1 --username=postgres --dbname=lapwing --no-psqlrc <<'END'
REVOKE ALL ON SCHEMA public FROM PUBLIC;
END
