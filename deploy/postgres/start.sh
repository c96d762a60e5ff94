#!/bin/sh
# Starts PostgreSQL with TLS. The server refuses a key that others may read, and a mounted secret is readable by all
# in its container, so the key is copied to where only the server's user sees it.
# `min_wal_size`: files of the log are used again after a checkpoint; making one anew holds a commit up for some 50 ms.
set -eu
install -d -o postgres -g postgres -m 0700 /run/tls
install -o postgres -g postgres -m 0600 /run/secrets/postgres.key /run/tls/server.key
install -o postgres -g postgres -m 0644 /run/secrets/postgres.pem /run/tls/server.pem
exec docker-entrypoint.sh postgres \
    -c ssl=on -c ssl_cert_file=/run/tls/server.pem -c ssl_key_file=/run/tls/server.key \
    -c ssl_min_protocol_version=TLSv1.2 \
    -c hba_file=/etc/fivedraw/pg_hba.conf \
    -c password_encryption=scram-sha-256 \
    -c max_connections=200 -c shared_buffers=256MB -c max_wal_size=2GB -c min_wal_size=1GB \
    -c synchronous_commit=on -c fsync=on -c full_page_writes=on \
    -c idle_in_transaction_session_timeout=30s -c lock_timeout=10s -c statement_timeout=60s \
    -c log_min_duration_statement=500ms -c log_parameter_max_length=0 -c log_parameter_max_length_on_error=0
