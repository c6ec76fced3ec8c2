"""Real proxies that ask /v1/authorize, each configured as its example in examples/ says."""

import contextlib
import signal

import pytest
import yaml
from proxies import EXAMPLES, PROXIES, App
from servers import http

THREE = [{"name": "three", "per": ["client"], "rate": "3/hour"}]
THREE_PER_IP = [{"name": "three", "per": ["ip"], "rate": "3/hour"}]
THREE_CHATS = [{"name": "chat", "rate": "3/hour", "match": {"method": "POST", "path": "/v1/chat/*", "host": "ai.test"}}]
BEHIND_PROXY = {"trusted_proxies": ["127.0.0.1/32"]}
KEY = "sk-live-0123456789abcdef"


@pytest.fixture
def app():
    app = App()
    yield app
    app.close()


@pytest.fixture(params=PROXIES, ids=lambda proxy: proxy.__name__.lower())
def start_proxy_before(request, tmp_path_factory, started, app):
    """start_proxy_before(weir, fail_open=False) -> the proxy, asking that Weir and forwarding to `app`"""

    def start(weir, **options):
        proxy = request.param(tmp_path_factory.mktemp("proxy"), weir.address("api")[1], app.port, **options)
        started.append(proxy)
        return proxy

    return start


@pytest.fixture
def decider(start_weir):
    def start(limits, identity=None):
        return start_weir(limits, listen={"gateway": None}, identity={**BEHIND_PROXY, **(identity or {})})

    return start


@contextlib.contextmanager
def stopped(weir, how):
    if how == signal.SIGSTOP:
        weir.pause()
    else:
        weir.kill()
    try:
        yield
    finally:
        if how == signal.SIGSTOP:
            weir.signal(signal.SIGCONT)


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def test_limits_reach_the_client_and_the_fourth_call_does_not_reach_the_app(decider, start_proxy_before, app):
    proxy = start_proxy_before(decider(THREE))
    with proxy.client(headers=bearer(KEY)) as client:
        for left in ("2", "1", "0"):
            answer = client.get("/v1/models")
            assert (answer.status_code, answer.text) == (200, "app")
            assert answer.headers["x-ratelimit-limit"] == "3"
            assert answer.headers["x-ratelimit-remaining"] == left
            assert answer.headers["ratelimit"].startswith(f'"three";r={left};t=')
            assert answer.headers["ratelimit-policy"] == '"three";q=3;w=3600'
            assert "retry-after" not in answer.headers
        for method in ("GET", "POST", "HEAD"):
            refused = client.request(method, "/v1/models")
            assert refused.status_code == 429
            assert refused.headers["retry-after"] == "1200"
            assert 1_190_000 < int(refused.headers["retry-after-ms"]) <= 1_200_000
            assert refused.headers["x-should-retry"] == "false"
            assert refused.headers["x-ratelimit-limit"] == "3"
            assert refused.headers["x-ratelimit-remaining"] == "0"
            assert refused.headers["ratelimit"] == '"three";r=0;t=1200'
            if method != "HEAD":
                assert refused.headers["content-type"] == "application/json"
                assert refused.json()["error"]["code"] == "rate_limit_exceeded"
        assert client.get("/v1/models", headers=bearer("another")).status_code == 200
    assert len(app.requests) == 4


def test_answers_of_the_app_are_left_alone(decider, start_proxy_before):
    proxy = start_proxy_before(decider([{"name": "many", "rate": "100/hour"}]))
    with proxy.client() as client:
        for status in (401, 403, 404, 429, 500, 503):
            answer = client.get("/", headers={"x-answer": str(status)})
            assert (answer.status_code, answer.text) == (status, "app")
            assert answer.headers["x-ratelimit-limit"] == "100"


def test_the_call_that_is_decided_is_the_clients(decider, start_proxy_before):
    proxy = start_proxy_before(decider(THREE_CHATS))
    here = {"host": "ai.test"}
    with proxy.client() as client:

        def post(path, **headers):
            return client.post(path, headers={**here, **headers}).status_code

        assert [post("/v1/chat/completions?deny=500&x=1") for _ in range(2)] == [200] * 2
        assert post("/v1/%63hat//completions/") == 200
        assert post("/v1/chat/completions") == 429
        assert post("/v1/chat/completions?deny=403") == 429
        assert client.get("/v1/chat/completions", headers=here).status_code == 200
        assert post("/v1/models") == 200
        assert post("/v1/chat/completions", host="other.test") == 200
        # Another name for the call, or another call beside the one that is made: of no effect.
        for name, value in (
            ("X-Forwarded-Uri", "/free"),
            ("X-Forwarded-Method", "GET"),
            ("X-Forwarded-Host", "other.test"),
            ("X-Original-URI", "/free"),
            ("X-Original-Method", "GET"),
        ):
            assert post("/v1/chat/completions", **{name: value}) == 429, name


def test_case62_the_address_is_what_the_proxy_sees(decider, start_proxy_before):
    proxy = start_proxy_before(decider(THREE_PER_IP, {"client": ["ip"]}))

    def spoofing(i):
        address = f"198.51.100.{i}"
        return {"X-Forwarded-For": address, "Forwarded": f"for={address}", "X-Real-IP": address}

    for address in ("127.0.0.2", "127.0.0.3"):
        with proxy.client(address) as client:
            statuses = [client.get("/", headers=spoofing(i)).status_code for i in range(5)]
            assert statuses == [200] * 3 + [429] * 2


def test_each_api_key_is_a_client_and_none_is_shown(decider, start_proxy_before):
    weir = decider(THREE, {"require": "api_key"})
    proxy = start_proxy_before(weir)
    with proxy.client() as client:
        for headers in (bearer(KEY), {"x-api-key": KEY}, {"api-key": KEY}):
            assert client.get("/", headers=headers).status_code == 200
        assert client.get("/", headers={"x-api-key": KEY}).status_code == 429
        assert client.get("/", headers={"x-api-key": "another"}).status_code == 200
        missing = client.get("/")
        assert missing.status_code == 401
        assert missing.headers["www-authenticate"] == "Bearer"
    weir.stop()
    assert KEY not in "\n".join(weir.stdout + weir.stderr)


def test_bodies_go_to_the_app_and_not_to_weir(decider, start_proxy_before, app):
    proxy = start_proxy_before(decider([{"name": "many", "rate": "100/hour"}]))
    body = b"x" * 1_000_000
    with proxy.client() as client:
        assert client.post("/sized", content=body).status_code == 200
        assert client.post("/chunked", content=(body[:500_000], body[500_000:])).status_code == 200
    assert [(path, len(received)) for _, path, _, received in app.requests] == [
        ("/sized", len(body)),
        ("/chunked", len(body)),
    ]


def test_connections_to_weir_are_kept(decider, start_proxy_before):
    weir = decider([{"name": "many", "rate": "100/hour"}])
    proxy = start_proxy_before(weir)
    with proxy.client() as client:
        for _ in range(20):
            assert client.get("/").status_code == 200
    # A connection for each call would be gone now, or there would be twenty.
    assert weir.metric("weir_connections", door="api") == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["gone", "hanging"])
def test_without_weir_nothing_passes(how, decider, start_proxy_before, app):
    weir = decider(THREE)
    proxy = start_proxy_before(weir)
    with proxy.client() as client:
        assert client.get("/").status_code == 200
        with stopped(weir, how):
            answers = [client.get("/") for _ in range(3)]
            assert {answer.status_code for answer in answers} <= proxy.away_statuses
            # Bounded: a second for an answer of Weir, and it is not asked again and again.
            assert all(answer.elapsed.total_seconds() < 2 for answer in answers)
        assert len(app.requests) == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["gone", "hanging"])
def test_without_weir_everything_passes_where_that_is_wanted(how, decider, start_proxy_before, app):
    weir = decider(THREE)
    proxy = start_proxy_before(weir, fail_open=True)
    with proxy.client() as client:
        assert [client.get("/").status_code for _ in range(4)] == [200] * 3 + [429]
        with stopped(weir, how):
            answers = [client.post("/", content=b"whole") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200] * 3
        assert "x-ratelimit-limit" not in answers[0].headers
        assert [body for _, _, _, body in app.requests[3:]] == [b"whole"] * 3


def test_nodes_that_share_a_store_decide_together(start_node, start_redis):
    server = start_redis()
    nodes = [start_node(server, THREE_CHATS, listen={"gateway": None}) for _ in range(2)]

    def asked(node, path):
        return http.post(f"{node.api}/v1/authorize{path}", headers={"host": "ai.test"}).status_code

    assert [asked(nodes[i % 2], "/v1/chat/completions?x=1") for i in range(5)] == [200] * 3 + [429] * 2
    assert asked(nodes[0], "/v1/models") == 200


def test_traefiks_example_is_yaml_that_asks_weir():
    """No Debian package and no wheel has a Traefik: its example is read, not run."""
    config = yaml.safe_load((EXAMPLES / "traefik" / "dynamic.yaml").read_text())["http"]
    auth = config["middlewares"]["weir"]["forwardAuth"]
    assert auth == {"address": "http://127.0.0.1:8081/v1/authorize", "trustForwardHeader": False}
    assert config["routers"]["app"]["middlewares"] == list(reversed(config["middlewares"]))
