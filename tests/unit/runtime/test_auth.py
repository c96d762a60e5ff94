"""Tokens and proofs: what is accepted, and everything that is not."""

import base64
import hashlib
import hmac
import http.server
import json
import threading

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from services.runtime import jwks
from services.runtime.auth import Authenticator, service_metadata, service_proof
from services.runtime.clock import SystemClock
from services.runtime.errors import Fault
from services.runtime.tokens import SigningKey

NOW = 1_800_000_000


class HandClock(SystemClock):
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = float(NOW)

    def now_ms(self) -> int:
        return int(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def house(make_settings, clock) -> Authenticator:
    return Authenticator(make_settings(), clock)


def claims(**changes):
    base = {"sub": "alice", "iss": "fivedraw", "aud": "fivedraw", "exp": NOW + 60, "roles": ["player"]}
    return {name: value for name, value in (base | changes).items() if value is not None}


def signed(key: SigningKey, content: dict, **header) -> str:
    return jwt.encode(content, key._private, algorithm="EdDSA", headers={"kid": key.key_id} | header)


async def refused(house, token: str) -> str:
    with pytest.raises(Fault) as caught:
        await house.identify([("authorization", f"Bearer {token}")])
    assert caught.value.reason == "UNAUTHENTICATED"
    return caught.value.message


async def test_a_valid_token_makes_a_person(house, signing_key):
    identity = await house.identify([("authorization", f"bearer {signed(signing_key, claims())}")])
    assert (identity.kind, identity.id, identity.roles) == ("person", "alice", {"player"})
    assert identity.expires_at == (NOW + 60) * 1000


@pytest.mark.parametrize("missing", ["sub", "iss", "aud", "exp"])
async def test_a_required_claim_is_required(house, signing_key, missing):
    assert "MissingRequiredClaim" in await refused(house, signed(signing_key, claims(**{missing: None})))


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "another"},
        {"aud": "another"},
        {"exp": NOW},
        {"exp": "never"},
        {"exp": True},
        {"exp": 10**18},
        {"nbf": NOW + 60},
        {"sub": "players/alice"},
        {"sub": ""},
        {"sub": "a" * 64},
        {"sub": 7},
        {"roles": "operator"},
        {"roles": [1]},
    ],
    ids=str,
)
async def test_a_wrong_claim_is_refused(house, signing_key, changes):
    await refused(house, signed(signing_key, claims(**changes)))


async def test_a_remembered_token_still_ends(house, signing_key, clock):
    token = signed(signing_key, claims())
    await house.identify([("authorization", f"Bearer {token}")])
    clock.seconds += 60
    assert await refused(house, token) == "the token has ended"


async def test_unknown_roles_give_nothing(house, signing_key):
    identity = await house.identify_token(signed(signing_key, claims(roles=["player", "root", "service:table"])))
    assert identity.roles == {"player"}


async def test_another_key_is_refused(house):
    await refused(house, signed(SigningKey.generate(), claims()))


async def test_another_key_with_a_known_id_is_refused(house, signing_key):
    await refused(house, signed(SigningKey.generate(), claims(), kid=signing_key.key_id))


async def test_no_algorithm_is_refused(house, signing_key):
    await refused(house, jwt.encode(claims(), None, algorithm="none", headers={"kid": signing_key.key_id}))


async def test_the_public_key_is_no_hmac_secret(house, signing_key):
    header = {"alg": "HS256", "typ": "JWT", "kid": signing_key.key_id}
    public = json.loads(signing_key.jwks())["keys"][0]["x"]
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in (header, claims())]
    signature = hmac.new(base64.urlsafe_b64decode(public + "="), b".".join(parts), hashlib.sha256).digest()
    await refused(house, b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode())


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer ", "Basic abc", "Bearer a.b.c", "Bearer " + "x" * 5000, b"\xff"]
)
async def test_garbage_is_refused(house, value):
    with pytest.raises(Fault, match="UNAUTHENTICATED"):
        await house.identify([("authorization", value)])


async def test_two_tokens_are_refused(house, signing_key):
    entry = ("authorization", f"Bearer {signed(signing_key, claims())}")
    with pytest.raises(Fault, match="more than one"):
        await house.identify([entry, entry])


async def test_no_credentials_make_nobody(house):
    assert await house.identify([("user-agent", "x")]) is None


async def test_services_prove_themselves(house, make_settings):
    identity = await house.identify(service_metadata(make_settings(), "table"))
    assert (identity.kind, identity.id, identity.is_service) == ("service", "table", True)


@pytest.mark.parametrize(
    ("name", "proof"),
    [
        ("table", service_proof(bytes(range(32)), "wallet")),
        ("wizard", service_proof(bytes(range(32)), "wizard")),
        ("table", ""),
        ("table", "é"),
        ("table", b"\x00"),
    ],
)
async def test_a_proof_is_for_one_name_that_exists(house, name, proof):
    with pytest.raises(Fault, match="UNAUTHENTICATED"):
        await house.identify([("x-fivedraw-service", name), ("x-fivedraw-service-proof", proof)])


async def test_without_a_service_key_no_proof_holds(make_settings, clock):
    house = Authenticator(make_settings(service_key=""), clock)
    with pytest.raises(Fault, match="UNAUTHENTICATED"):
        await house.identify(
            [("x-fivedraw-service", "table"), ("x-fivedraw-service-proof", service_proof(b"", "table"))]
        )


def rsa_key(bits: int, kid: str = "rsa") -> tuple[rsa.RSAPrivateKey, dict]:
    private = rsa.generate_private_key(65537, bits)
    entry = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(private.public_key()))
    return private, {"kty": "RSA", "n": entry["n"], "e": entry["e"], "kid": kid}


def rsa_signed(private, **header) -> str:
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return jwt.encode(claims(), pem, algorithm="RS256", headers={"kid": "rsa"} | header)


async def test_rsa_keys_are_known_too_unless_short(make_settings, clock, tmp_path):
    private, entry = rsa_key(2048)
    short, short_entry = rsa_key(1024, "short")
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [entry, short_entry]}))
    house = Authenticator(make_settings(jwks=str(tmp_path / "jwks.json")), clock)
    assert (await house.identify_token(rsa_signed(private))).id == "alice"
    await refused(house, rsa_signed(short, kid="short"))


async def test_keys_are_read_again_for_an_unknown_one_but_not_often(make_settings, clock, tmp_path, signing_key):
    path = tmp_path / "jwks.json"
    path.write_text(signing_key.jwks())
    house = Authenticator(make_settings(jwks=str(path)), clock)
    await house.identify_token(signed(signing_key, claims()))
    newer = SigningKey.generate()
    path.write_text(newer.jwks())
    await refused(house, signed(newer, claims()))
    clock.seconds += jwks.UNKNOWN_KEY_REFRESH_SECONDS
    assert (await house.identify_token(signed(newer, claims()))).id == "alice"
    # A withdrawn key takes along the tokens that were remembered.
    await refused(house, signed(signing_key, claims()))


async def test_a_source_that_fails_leaves_the_keys_for_a_while(make_settings, clock, tmp_path, signing_key):
    path = tmp_path / "jwks.json"
    path.write_text(signing_key.jwks())
    house = Authenticator(make_settings(jwks=str(path)), clock)
    content = claims(exp=NOW + 100_000)
    await house.identify_token(signed(signing_key, content))
    path.write_text("not json")
    clock.seconds += jwks.REFRESH_SECONDS
    await house.identify_token(signed(signing_key, content))
    clock.seconds += jwks.STALE_SECONDS_MAX
    await refused(house, signed(signing_key, content))


async def test_keys_come_over_http(make_settings, clock, signing_key):
    class Issuer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(signing_key.jwks().encode())

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Issuer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        house = Authenticator(make_settings(jwks=f"http://127.0.0.1:{server.server_port}/keys"), clock)
        assert (await house.identify_token(signed(signing_key, claims()))).id == "alice"
        server.shutdown()


@pytest.mark.parametrize(
    "document", [b"[]", b"{}", b'{"keys": 3}', b'{"keys": [' + b",".join([b"{}"] * 65) + b"]}", b" " * 300_000]
)
def test_a_key_set_of_another_shape_is_refused(document):
    with pytest.raises(ValueError, match=r"key set|Expecting"):
        jwks.parse(document)


def test_keys_of_other_kinds_are_skipped():
    _, entry = rsa_key(2048)
    kinds = [{"kty": "oct", "k": "AAAA", "kid": "a"}, {"kty": "OKP", "crv": "X25519", "kid": "b"}, 7]
    kinds += [entry | {"use": "enc", "kid": "c"}, entry | {"alg": "RS512", "kid": "d"}, entry]
    assert set(jwks.parse(json.dumps({"keys": kinds}).encode())) == {"rsa"}


def test_the_signing_key_is_made_once_and_kept_private(tmp_path):
    path = tmp_path / "keys" / "signing.pem"
    first = SigningKey.load_or_create(path)
    assert SigningKey.load_or_create(path).key_id == first.key_id
    assert path.stat().st_mode & 0o777 == 0o600
