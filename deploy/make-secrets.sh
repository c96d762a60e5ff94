#!/bin/sh
# Makes the secrets that docker-compose.yml mounts, in deploy/secrets: a private certificate authority with one
# certificate for each service, the services' keys, and the stores' passwords. What exists is kept, so it may be run
# again. A house with an authority and a secret store of its own puts the same files there instead.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
cd secrets

DAYS=825

# once FILE COMMAND...: writes the command's output to FILE unless it is there.
once() {
    file=$1
    shift
    [ -s "$file" ] || { "$@" >"$file.new" && mv "$file.new" "$file"; }
}

hex() { openssl rand -hex 32 | tr -d '\n'; }

password() { openssl rand -hex 24 | tr -d '\n'; }

# certificate NAME DNS...: a key and a certificate whose common name is NAME, also valid for localhost.
certificate() {
    name=$1
    shift
    [ -s "$name.pem" ] && return
    alternatives="DNS:localhost,IP:127.0.0.1,DNS:$name"
    for each in "$@"; do alternatives="$alternatives,DNS:$each"; done
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$name" \
        -keyout "$name.key" -out "$name.csr" 2>/dev/null
    printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$alternatives" >"$name.ext"
    openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days "$DAYS" \
        -extfile "$name.ext" -out "$name.pem" 2>/dev/null
    rm -f "$name.csr" "$name.ext"
}

if [ ! -s ca.pem ]; then
    openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 \
        -subj "/CN=fivedraw private authority" -keyout ca.key -out ca.pem 2>/dev/null
fi
for service in table deck wallet history console envoy prometheus redis broker postgres; do
    certificate "$service"
done

# People's tokens: an Ed25519 key, and its public half as a key set. With an issuer of your own, only FIVEDRAW_JWKS
# matters and these two files are not used.
once signing.pem openssl genpkey -algorithm ed25519
public=$(openssl pkey -in signing.pem -pubout -outform DER | tail -c 32 | base64 | tr '+/' '-_' | tr -d '=\n')
kid=$(openssl pkey -in signing.pem -pubout -outform DER | tail -c 32 | openssl dgst -sha256 -r | cut -c 1-16)
once jwks.json printf '{"keys": [{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "%s", "x": "%s"}]}\n' \
    "$kid" "$public"

once sealing_keys printf 's1:%s' "$(hex)"
once deck_sealing_keys printf 'd1:%s' "$(hex)"
once console_key hex
# Where alerts go; put the addresses of your own receivers here.
once alert_pages_url printf 'http://127.0.0.1:9/pages'
once alert_tickets_url printf 'http://127.0.0.1:9/tickets'
once grafana_password password
once postgres_password password

authority=/run/secrets/ca.pem
: >postgres_roles.new
for service in table deck wallet history console; do
    once "${service}_password" password
    # One role and one database for each, both of this name.
    role="fivedraw_$service"
    once "${service}_database_url" printf 'postgresql://%s:%s@postgres:5432/%s?sslmode=verify-full&sslrootcert=%s' \
        "$role" "$(cat "${service}_password")" "$role" "$authority"
    {
        printf "CREATE ROLE %s LOGIN PASSWORD '%s';\n" "$role" "$(cat "${service}_password")"
        printf 'CREATE DATABASE %s OWNER %s;\nREVOKE ALL ON DATABASE %s FROM PUBLIC;\n' "$role" "$role" "$role"
    } >>postgres_roles.new
done
mv -f postgres_roles.new postgres_roles.sql

# Redis: the tables' store has one user; the broker has one for each side of the queues. Nobody may administer.
once redis_password password
once broker_table_password password
once broker_history_password password
once broker_wallet_password password
once redis_url printf 'rediss://table:%s@redis:6379/0?ssl_ca_certs=%s' "$(cat redis_password)" "$authority"
for side in table history wallet; do
    once "broker_${side}_url" printf 'rediss://%s:%s@broker:6379/0?ssl_cert_reqs=required&ssl_ca_certs=%s' \
        "$side" "$(cat "broker_${side}_password")" "$authority"
done
rights='-@all +@read +@write +@string +@hash +@list +@set +@sortedset +@stream +@pubsub +@scripting +@transaction +@connection -@dangerous +info +time'
{
    printf 'user default off resetkeys resetchannels -@all\n'
    printf 'user health on nopass resetkeys resetchannels -@all +ping\n'
    printf 'user table on >%s ~fd:* &fd:* %s\n' "$(cat redis_password)" "$rights"
} >redis.acl.new
{
    printf 'user default off resetkeys resetchannels -@all\n'
    printf 'user health on nopass resetkeys resetchannels -@all +ping\n'
    for side in table history wallet; do
        printf 'user %s on >%s ~* &* %s\n' "$side" "$(cat "broker_${side}_password")" "$rights"
    done
} >broker.acl.new
mv -f redis.acl.new redis.acl
mv -f broker.acl.new broker.acl

# The folder keeps others out; the files are read by several users inside the containers they are mounted into.
chmod 0700 .
chmod 0444 ./*
chmod 0400 ca.key signing.pem
# Grows with each certificate.
chmod 0600 ca.srl
echo "secrets are in $(pwd)"
