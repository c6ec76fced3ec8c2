"""The gateway limits: the headers of allowed calls, and how refusals look."""

import re
import time

import httpx
import pytest
from raw_http import exchange
from servers import CHAT, http


def test_headers_of_allowed_and_denied_calls(start_weir):
    weir = start_weir([{"name": "two", "per": ["client"], "rate": "2/hour"}])
    before = int(time.time())
    for remaining in ("1", "0"):
        answer = weir.get("/v1/models", key="a")
        assert answer.status_code == 200
        assert answer.headers["x-ratelimit-limit"] == "2"
        assert answer.headers["x-ratelimit-remaining"] == remaining
        assert answer.headers["x-ratelimit-limit-requests"] == "2"
        assert answer.headers["x-ratelimit-remaining-requests"] == remaining
        assert "retry-after" not in answer.headers
        assert re.fullmatch(r'"two";q=2;w=3600(;pk=:[A-Za-z0-9+/=]+:)?', answer.headers["ratelimit-policy"])
        assert answer.headers["ratelimit"].startswith(f'"two";r={remaining};t=')
    denied = weir.get("/v1/models", key="a")
    assert denied.status_code == 429
    assert denied.headers["x-ratelimit-remaining"] == "0"
    assert denied.headers["cache-control"] == "no-store"
    wait = int(denied.headers["retry-after"])
    assert 1790 <= wait <= 1800
    assert (wait - 1) * 1000 < int(denied.headers["retry-after-ms"]) <= wait * 1000
    assert before + 3590 <= int(denied.headers["x-ratelimit-reset"]) <= time.time() + 3601
    assert weir.get("/v1/models", key="b").status_code == 200


def test_case37_all_matching_limits_apply_in_every_order(start_weir):
    import itertools

    limits = [
        {"name": "api", "per": ["client"], "rate": "10/hour", "match": {"path": "/api/*"}},
        {"name": "v1", "per": ["client"], "rate": "5/hour", "match": {"path": "/api/v1/*"}},
        {"name": "chat", "per": ["client"], "rate": "3/hour", "match": {"path": "/api/v1/chat"}},
    ]
    for order in itertools.permutations(limits):
        weir = start_weir(order)
        answers = [weir.get("/api/v1/chat", key="a") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert answers[3].headers["x-ratelimit-limit"] == "3"
        assert [weir.get("/api/v1/other", key="a").status_code for _ in range(3)] == [200, 200, 429]
        weir.stop()


def test_case49_a_month_in_another_time_zone(start_weir, fake_clock):
    from datetime import UTC, datetime

    limits = [
        {
            "name": "month",
            "per": ["client"],
            "rate": "1/month",
            "algorithm": "fixed_window",
            "align": "calendar",
            "timezone": "Asia/Tokyo",
        }
    ]
    fake_clock.set(datetime(2026, 7, 31, 14, 59, 0, tzinfo=UTC))
    weir = start_weir(limits, env=fake_clock.env)
    assert weir.get(key="a").status_code == 200
    fake_clock.set(datetime(2026, 7, 31, 14, 59, 59, tzinfo=UTC))
    denied = weir.get(key="a")
    assert denied.status_code == 429
    assert denied.headers["retry-after"] == "1"
    fake_clock.set(datetime(2026, 7, 31, 15, 0, 0, tzinfo=UTC))
    assert weir.get(key="a").status_code == 200


def test_case52_waiting_as_long_as_announced_succeeds(start_weir):
    weir = start_weir([{"name": "ten", "per": ["client"], "rate": "10/s", "burst": 1}])
    assert weir.get(key="a").status_code == 200
    denied = weir.get(key="a")
    assert denied.status_code == 429
    assert re.fullmatch(r"[1-9][0-9]*", denied.headers["retry-after"])
    announced_ms = int(denied.headers["retry-after-ms"])
    assert 1 <= announced_ms <= 100
    time.sleep(announced_ms / 1000)
    assert weir.get(key="a").status_code == 200


def test_case55_ratelimit_is_a_delta_and_x_ratelimit_reset_an_epoch(start_weir):
    weir = start_weir([{"name": "two", "per": ["client"], "rate": "2/min"}])
    denied = [weir.get(key="a") for _ in range(3)][-1]
    assert denied.status_code == 429
    t = int(re.search(r";t=(\d+)", denied.headers["ratelimit"])[1])
    assert t == int(denied.headers["retry-after"])
    assert 1 <= t <= 30
    reset = int(denied.headers["x-ratelimit-reset"])
    assert time.time() <= reset <= time.time() + 61
    in_seconds = start_weir(
        [{"name": "two", "per": ["client"], "rate": "2/min"}], answers={"x_ratelimit_reset": "seconds"}
    )
    denied = [in_seconds.get(key="a") for _ in range(3)][-1]
    assert 30 < int(denied.headers["x-ratelimit-reset"]) <= 60


def test_case56_each_header_once_and_the_upstream_s_dropped(start_weir):
    limits = [
        {"name": "a", "per": ["client"], "rate": "5/hour"},
        {"name": "b", "per": [], "rate": "50/hour"},
    ]
    weir = start_weir(limits)
    sent = "X-RateLimit-Limit: 9|x-ratelimit-remaining: 9|RateLimit: x|Retry-After: 9"
    answer = exchange(weir.address("gateway"), f"GET /v1/models HTTP/1.1\r\nHost: a\r\nx-mock-headers: {sent}\r\n\r\n")
    assert answer.all("x-ratelimit-limit") == ["5"]
    assert answer.all("x-ratelimit-remaining") == ["4"]
    assert len(answer.all("x-ratelimit-reset")) == 1
    assert len(answer.all("ratelimit")) == 1 and answer.get("ratelimit") != "x"
    assert len(answer.all("ratelimit-policy")) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_case57_a_refusal_has_the_shape_that_ai_clients_read(start_weir, stream):
    weir = start_weir([{"name": "one", "per": ["client"], "rate": "1/hour"}])
    assert weir.chat(key="a").status_code == 200
    denied = weir.chat(key="a", stream=stream)
    assert denied.status_code == 429
    assert denied.headers["content-type"].startswith("application/json")
    body = denied.json()
    assert "one" in body["error"]["message"]
    assert body["error"]["type"] == "requests"
    assert body["error"]["code"] == "rate_limit_exceeded"
    assert body["error"]["param"] is None
    assert body["error"]["limit"] == "one"
    assert body["error"]["retry_after_seconds"] == int(denied.headers["retry-after"])
    assert body["error"]["retry_after_ms"] == int(denied.headers["retry-after-ms"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", body["error"]["retry_after_at"])
    messages = weir.chat(key="a", path="/v1/messages", max_tokens=10)
    assert messages.status_code == 429
    assert messages.json()["type"] == "error"
    assert messages.json()["error"]["type"] == "rate_limit_error"
    other = weir.get("/other", key="a")
    assert other.headers["content-type"].startswith("application/problem+json")
    assert other.json()["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert other.json()["violated-policies"] == ["one"]


def test_case58_preflights_are_free_and_refusals_readable_by_browsers(start_weir):
    origin = "https://app.example.com"
    weir = start_weir([{"name": "forty", "per": ["client"], "rate": "40/hour"}], cors={"origins": [origin]})
    url = f"{weir.gateway}/v1/chat/completions"
    preflight = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type",
    }
    with httpx.Client() as client:
        for _ in range(40):
            options = client.options(url, headers=preflight)
            assert options.status_code in (200, 204)
            assert options.headers["access-control-allow-origin"] == origin
            answer = client.post(url, json=CHAT, headers={"origin": origin, "authorization": "Bearer a"})
            assert answer.status_code == 200
        denied = client.post(url, json=CHAT, headers={"origin": origin, "authorization": "Bearer a"})
    assert denied.status_code == 429
    assert denied.headers["access-control-allow-origin"] == origin
    exposed = denied.headers["access-control-expose-headers"].lower()
    assert "retry-after" in exposed and "x-ratelimit-remaining" in exposed
    foreign = weir.get(headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in foreign.headers


def test_case59_probes_and_scrapes_are_never_limited(start_weir):
    weir = start_weir([{"name": "global", "per": [], "rate": "1/hour"}])
    assert weir.get().status_code == 200
    assert weir.get().status_code == 429
    before = weir.metric("weir_decisions_total")
    with httpx.Client() as client:
        for path in ("/healthz", "/livez", "/readyz", "/metrics"):
            assert {client.get(weir.ops + path).status_code for _ in range(100)} == {200}
    assert weir.metric("weir_decisions_total") == before


def test_case83c_a_body_without_max_tokens_is_fine_under_a_request_limit(start_weir):
    weir = start_weir([{"name": "ten", "per": ["client", "model"], "rate": "10/hour"}])
    answer = weir.chat(key="a")
    assert answer.status_code == 200
    assert answer.headers["x-ratelimit-remaining"] == "9"


def test_the_model_is_read_from_the_body(start_weir):
    limits = [{"name": "dear", "per": ["client", "model"], "rate": "1/hour", "match": {"model": "dear-*"}}]
    weir = start_weir(limits)
    assert weir.chat(key="a", model="dear-1").status_code == 200
    assert weir.chat(key="a", model="dear-1").status_code == 429
    assert weir.chat(key="a", model="dear-2").status_code == 200
    assert weir.chat(key="a", model="cheap").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        '{"model":"cheap","messages":[],"model":"dear"}',
        '{"mod\\u0065l":"dear","messages":[]}',
        '{"model":"cheap","messages":[]}{"model":"dear"}',
        '{"model":"cheap","stream":tru}',
        '{"model":"cheap","Model":"dear"}',
        '{"model":7}',
        '["model"]',
    ],
)
def test_case83g_bodies_that_two_readers_could_read_differently(start_weir, start_upstream, body):
    upstream = start_upstream()
    limits = [{"name": "dear", "per": ["client"], "rate": "10/hour", "match": {"model": "dear"}}]
    weir = start_weir(limits, upstream=upstream.url)
    answer = http.post(
        f"{weir.gateway}/v1/chat/completions",
        content=body,
        headers={"authorization": "Bearer a", "content-type": "application/json"},
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
    assert upstream.stats()["requests"] == 0


def test_case87_a_random_key_for_each_call_is_bounded_by_the_address(start_weir):
    limits = [
        {"name": "per-ip", "per": ["ip"], "rate": "50/hour"},
        {"name": "per-client", "per": ["client"], "rate": "5/hour"},
    ]
    weir = start_weir(limits)
    with httpx.Client() as client:
        statuses = [
            client.get(f"{weir.gateway}/v1/models", headers={"authorization": f"Bearer random-{i}"}).status_code
            for i in range(1000)
        ]
    assert statuses.count(200) == 50
    assert statuses.count(429) == 950
