"""A real Envoy that limits through the gRPC door, both as their examples in examples/ say."""

import signal

import pytest
import yaml
from proxies import EXAMPLES, App, EnvoyRateLimit
from servers import wait_until


@pytest.fixture
def app():
    app = App()
    yield app
    app.close()


@pytest.fixture
def weir(start_weir):
    limits = yaml.safe_load((EXAMPLES / "rate-limit-service.yaml").read_text())["limits"]
    return start_weir(limits, listen={"gateway": None, "grpc": "127.0.0.1:0"})


@pytest.fixture
def envoy(weir, app, tmp_path_factory, started):
    proxy = EnvoyRateLimit(tmp_path_factory.mktemp("envoy"), weir.address("grpc")[1], app.port)
    started.append(proxy)
    # Until its health check has found Weir, it answers for itself.
    wait_until(lambda: weir.metric("weir_connections", door="grpc") > 0, "Envoy has found Weir")
    return proxy


def get(client, user, path="/"):
    return client.get(path, headers={"x-user-id": user})


def test_envoy_limits_through_weir_and_says_so(weir, envoy, app):
    with envoy.client() as client:
        answers = [get(client, "alice") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["2", "1", "0", "0"]
        assert all(answer.headers["x-ratelimit-limit"] == '3, 3;w=3600;name="per-user"' for answer in answers)
        assert all(0 < int(answer.headers["x-ratelimit-reset"]) <= 3600 for answer in answers)
        assert get(client, "bob").status_code == 200
    assert len(app.requests) == 4
    assert weir.metric("weir_limit_decisions_total", limit="trial", outcome="shadow_denied") == 2


def test_the_refusal_is_the_one_of_every_door(envoy):
    with envoy.client() as client:
        refused = [get(client, "carol") for _ in range(4)][-1]
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["cache-control"] == "no-store"
    assert 0 < int(refused.headers["retry-after"]) <= 3600
    assert refused.headers["ratelimit"].startswith('"per-user";r=0;t=')
    body = refused.json()
    assert (body["status"], body["limit"]) == (429, "per-user")
    assert body["violated-policies"] == ["per-user"]
    # Each field once, whoever wrote it.
    names = [name.lower() for name, _ in refused.headers.multi_items()]
    assert len(names) == len(set(names))


def test_a_path_has_a_limit_of_its_own(envoy):
    with envoy.client() as client:
        answer = get(client, "dora", "/reports/7")
        assert answer.status_code == 200
        assert answer.headers["ratelimit-policy"] == '"per-user";q=3;w=3600, "reports";q=100;w=60'
        assert client.get("/elsewhere").status_code == 200  # No user and no such path: no limit.


def test_without_weir_calls_pass_as_the_example_says(weir, envoy):
    with envoy.client() as client:
        assert get(client, "erin").status_code == 200
        weir.signal(signal.SIGKILL)
        weir.wait()
        assert [get(client, "erin").status_code for _ in range(5)] == [200] * 5


def test_a_drain_fails_no_call(weir, envoy, app):
    with envoy.client() as client:
        for name in range(20):
            assert get(client, f"user-{name}").status_code == 200
        weir.signal(signal.SIGTERM)
        assert [get(client, f"user-{name}").status_code for name in range(20)] == [200] * 20
    assert weir.wait() == 0
    assert len(app.requests) == 40
