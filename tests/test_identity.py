"""Who a call counts against, at the gateway."""

import time

import jwt
import pytest
from raw_http import exchange
from servers import http

SECRET = "an-hs256-secret-of-at-least-32-bytes!"
FIVE_PER_CLIENT = [{"name": "five", "per": ["client"], "rate": "5/hour"}]
FIVE_PER_IP = [{"name": "five", "per": ["ip"], "rate": "5/hour"}]
BEHIND_PROXY = {"trusted_proxies": ["127.0.0.1/32"]}


def forwarded(weir, *values, name="X-Forwarded-For"):
    lines = "".join(f"{name}: {value}\r\n" for value in values)
    return exchange(weir.address("gateway"), f"GET /v1/models HTTP/1.1\r\nHost: a\r\n{lines}\r\n").status


@pytest.fixture
def jwt_identity(tmp_path):
    keys = tmp_path / "hs256.key"
    keys.write_text(SECRET + "\n")
    return {
        "client": ["api_key", "jwt.sub", "ip"],
        "jwt": {"keys": str(keys), "algorithms": ["HS256"], "issuer": "weir-tests", "audience": "weir"},
    }


def token(subject, secret=SECRET, **claims):
    payload = {"sub": subject, "iss": "weir-tests", "aud": "weir", "exp": int(time.time()) + 600, **claims}
    return jwt.encode({name: value for name, value in payload.items() if value is not None}, secret, algorithm="HS256")


def test_case62_only_what_a_trusted_proxy_wrote_names_the_client(start_weir):
    for lines in (
        lambda i: [f"198.51.{i}.1, 203.0.113.9"],
        lambda i: [f"198.51.{i}.1", "203.0.113.9"],
    ):
        weir = start_weir(FIVE_PER_IP, identity=BEHIND_PROXY)
        statuses = [forwarded(weir, *lines(i)) for i in range(12)]
        assert statuses == [200] * 5 + [429] * 7
    untrusted = start_weir(FIVE_PER_IP)
    statuses = [forwarded(untrusted, f"198.51.{i}.1, 203.0.{i}.9") for i in range(12)]
    assert statuses == [200] * 5 + [429] * 7


def test_case63_ports_are_no_part_of_an_address(start_weir):
    weir = start_weir(FIVE_PER_IP, identity=BEHIND_PROXY)
    statuses = [forwarded(weir, f"203.0.113.7:{port}") for port in range(52241, 52253)]
    assert statuses == [200] * 5 + [429] * 7
    assert forwarded(weir, "203.0.113.8") == 200
    for address in ("[2001:db8::1]:443", "2001:db8::1", "[2001:db8::1]", "2001:db8::1", "[2001:db8::1]:80"):
        assert forwarded(weir, address) == 200
    assert forwarded(weir, "2001:db8::1") == 429
    assert forwarded(weir, "::ffff:203.0.113.8") == 200
    assert [forwarded(weir, "203.0.113.8") for _ in range(4)] == [200, 200, 200, 429]


def test_case62_forwarded_of_rfc_7239(start_weir):
    weir = start_weir(FIVE_PER_IP, identity=BEHIND_PROXY)
    value = 'for=198.51.100.{i}, for="[2001:db8:cafe::17]:4711"'
    statuses = [forwarded(weir, value.format(i=i), name="Forwarded") for i in range(12)]
    assert statuses == [200] * 5 + [429] * 7


def test_case65_a_slash_64_is_one_client_and_rotation_evicts_nobody(start_weir):
    weir = start_weir(FIVE_PER_IP, identity=BEHIND_PROXY, store={"max_keys": 1000})
    statuses = [forwarded(weir, f"2001:db8:1:2:{i:x}::1") for i in range(20)]
    assert statuses == [200] * 5 + [429] * 15
    # Fill the store twice over with other /64s; the exhausted one stays exhausted.
    for begin in range(0, 2000, 1000):
        checks = [{"attributes": {"ip": f"2001:db8:{i:x}::1"}} for i in range(begin + 10, begin + 1010)]
        assert http.post(f"{weir.api}/v1/check", json={"checks": checks}, timeout=30).status_code == 200
    assert forwarded(weir, "2001:db8:1:2:ffff::1") == 429
    assert weir.metric("weir_store_keys") <= 1000


def test_case66_each_kind_of_identity_has_its_own_counters(start_weir, jwt_identity):
    weir = start_weir(FIVE_PER_CLIENT, identity={**jwt_identity, **BEHIND_PROXY})
    for i in range(10):
        assert weir.get(key=token(f"user-{i}")).status_code == 200
    assert [forwarded(weir, "203.0.113.1") for _ in range(6)] == [200] * 5 + [429]
    assert forwarded(weir, "203.0.113.2") == 200
    assert [weir.get(key=token("user-0")).status_code for _ in range(5)] == [200] * 4 + [429]


def test_case67_an_unverified_token_names_nobody(start_weir, jwt_identity):
    limits = [*FIVE_PER_IP, {"name": "users", "per": ["client"], "rate": "100/hour"}]
    weir = start_weir(limits, identity=jwt_identity)
    statuses = [
        weir.get(key=token(f"user-{i}", secret="another-secret-of-at-least-32-bytes")).status_code for i in range(20)
    ]
    assert statuses.count(401) <= 5 or statuses.count(401) == 20
    assert statuses.count(401) + statuses.count(429) == 20
    # One counter for the address under each of the two limits, at most.
    assert weir.metric("weir_store_keys") <= 2


@pytest.mark.parametrize(
    "claims",
    [{"exp": 1}, {"exp": None}, {"iss": "other"}, {"aud": "other"}, {"sub": ""}, {"nbf": 4102444800}],
    ids=lambda claims: next(iter(claims)),
)
def test_a_token_that_is_not_valid_is_401(start_weir, jwt_identity, claims):
    weir = start_weir(FIVE_PER_CLIENT, identity=jwt_identity)
    subject = claims.get("sub", "user")
    more = {name: value for name, value in claims.items() if name != "sub"}
    answer = weir.get(key=token(subject, **more))
    assert answer.status_code == 401
    assert answer.json()["error"]["message"]
    unsigned = jwt.encode({"sub": "a", "exp": int(time.time()) + 60}, None, algorithm="none")
    assert weir.get(key=unsigned).status_code == 401


def test_case68_the_key_is_what_bearer_carries(start_weir):
    limits = [{"name": "three", "per": ["client"], "rate": "3/hour"}]
    identity = {"client": ["api_key"], "require": "api_key"}

    def statuses(weir, form):
        request = f"GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: {form}\r\n\r\n"
        return [exchange(weir.address("gateway"), request).status for _ in range(3)]

    weir = start_weir(limits, identity=identity)
    seen = [statuses(weir, form) for form in ("Bearer K", "bearer K", "Bearer  K", "x Bearer K")]
    assert seen[0] == [200] * 3
    assert seen[1] == [429] * 3  # The scheme's case makes no other key.
    assert 200 not in seen[2] + seen[3]
    for malformed in ("Bearer  K", "x Bearer K"):
        assert statuses(start_weir(limits, identity=identity), malformed) == [401] * 3


def test_keys_in_all_three_headers_are_one_client(start_weir):
    weir = start_weir(FIVE_PER_CLIENT)
    for headers in ({"authorization": "Bearer k"}, {"x-api-key": "k"}, {"api-key": "k"}):
        assert weir.get(headers=headers).status_code == 200
    assert weir.get(headers={"x-api-key": "k"}).headers["x-ratelimit-remaining"] == "1"


def test_401_without_a_required_key(start_weir):
    weir = start_weir(FIVE_PER_CLIENT, identity={"require": "api_key"})
    answer = weir.chat()
    assert answer.status_code == 401
    assert answer.json()["error"]["message"]
    assert "www-authenticate" in answer.headers
    assert weir.chat(key="k").status_code == 200


def test_header_identities_only_from_trusted_proxies(start_weir):
    identity = {"client": ["header.x-user-id", "ip"]}
    trusting = start_weir(FIVE_PER_CLIENT, identity={**identity, **BEHIND_PROXY})
    for user in ("u1", "u2"):
        statuses = [trusting.get(headers={"x-user-id": user}).status_code for _ in range(6)]
        assert statuses == [200] * 5 + [429]
    wary = start_weir(FIVE_PER_CLIENT, identity={**identity, "trusted_proxies": ["192.0.2.1/32"]})
    statuses = [wary.get(headers={"x-user-id": f"u{i}"}).status_code for i in range(6)]
    assert statuses == [200] * 5 + [429]


def test_no_credential_appears_anywhere(start_weir, upstream, jwt_identity):
    secrets = ["sk-live-0123456789abcdef", "upstream-credential-123456", SECRET, "api-door-token-123456"]
    weir = start_weir(
        [{"name": "two", "per": ["client"], "rate": "2/hour"}],
        identity=jwt_identity,
        listen={"api": {"address": "127.0.0.1:0", "token": secrets[3]}},
        upstreams=[
            {"name": "ai", "urls": [upstream.url], "headers": {"authorization": f"Bearer {secrets[1]}"}},
            {"name": "gone", "urls": ["http://127.0.0.1:1"], "headers": {"x-api-key": secrets[1]}},
        ],
        routes=[
            {"match": {"path": "/v1/*"}, "upstream": "ai"},
            {"match": {"path": "/gone"}, "upstream": "gone"},
        ],
    )
    signed = token("someone")
    seen = []
    for key in (secrets[0], signed, token("someone", secret="x" * 40)):
        for path in ("/v1/models", "/v1/models", "/v1/models", "/gone"):
            answer = weir.get(path, key=key)
            seen.append(answer.text + str(answer.headers))
    door = {"authorization": f"Bearer {secrets[3]}"}
    body = {"attributes": {"api_key": secrets[0]}}
    seen.append(http.post(f"{weir.api}/v1/check", json=body, headers=door).text)
    seen.append(http.get(f"{weir.api}/v1/limits", headers=door).text)
    seen.append(http.get(f"{weir.admin}/admin/top?by=denied&n=20").text)
    seen.append(weir.metrics())
    assert weir.stop() == 0
    seen += weir.stdout + weir.stderr
    for secret in (*secrets, signed, signed.split(".")[2]):
        for text in seen:
            assert secret not in text
