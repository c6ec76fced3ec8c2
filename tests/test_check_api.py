"""The decision API over HTTP: exact values under a clock that stands still, errors, reservations, OpenAPI."""

import json
import re

import pytest
from raw_http import RawConnection, exchange
from servers import http


def ad_hoc(key, rate, cost=None, **rule):
    body = {"key": key, "rule": {"rate": rate, **rule}}
    if cost is not None:
        body["cost"] = cost
    return body


def test_case4_the_wait_counts_the_partly_built_token(start_weir, fake_clock):
    weir = start_weir(env=fake_clock.env)
    call = ad_hoc("k", "1/s", burst=1)
    assert weir.decide(**call)["allowed"]
    fake_clock.advance(0.2)
    denied = weir.decide(**call)
    assert not denied["allowed"]
    assert denied["retry_after_ms"] == 800
    assert weir.check(**call, status=429).headers["retry-after"] == "1"
    fake_clock.advance(0.8)
    assert weir.decide(**call)["allowed"]


def test_case16_a_negative_cost_is_refused_and_changes_nothing(start_weir):
    weir = start_weir([{"name": "ten", "per": ["client"], "rate": "10/hour"}])
    assert weir.decide({"client": "a"}, 3)["limits"][0]["remaining"] == 7
    refused = weir.check({"client": "a"}, {"requests": -5})
    assert refused.status_code == 400
    assert "cost" in refused.json()["error"]["message"]
    assert weir.decide({"client": "a"}, 1)["limits"][0]["remaining"] == 6


def test_case17_a_released_reservation_gives_back_and_never_more(start_weir, fake_clock):
    weir = start_weir([{"name": "ten", "per": ["client"], "rate": "10/hour"}], env=fake_clock.env)
    held = weir.decide({"client": "a"}, 1, reserve=True)
    assert weir.decide({"client": "a"}, 9)["limits"][0]["remaining"] == 0
    released = http.post(f"{weir.api}/v1/release", json={"reservation": held["reservation"]})
    assert released.status_code == 200
    assert weir.decide({"client": "a"})["allowed"]
    assert not weir.decide({"client": "a"})["allowed"]

    # A release of what time has refilled already gives nothing back: never above 10.
    held = weir.decide({"client": "b"}, 10, reserve={"ttl": "3h"})
    fake_clock.advance(3600)
    assert http.post(f"{weir.api}/v1/release", json={"reservation": held["reservation"]}).status_code == 200
    assert weir.decide({"client": "b"}, 0, peek=True)["limits"][0]["remaining"] == 10
    again = http.post(f"{weir.api}/v1/release", json={"reservation": held["reservation"]})
    assert again.status_code == 200
    assert weir.decide({"client": "b"}, 0, peek=True)["limits"][0]["remaining"] == 10


def test_case19_reset_counts_all_units(start_weir, fake_clock):
    weir = start_weir(env=fake_clock.env)
    assert weir.decide(**ad_hoc("k", "10/60s", cost=5))["limits"][0]["reset_after_ms"] == 30000


@pytest.mark.parametrize("cost", ["1.5", '"abc"', "1e30", "-1", "[1]", "true"])
def test_case29_a_cost_that_is_no_whole_number_names_the_field(start_weir, cost):
    weir = start_weir([{"name": "ten", "per": ["client"], "rate": "10/hour"}])
    for body in (
        f'{{"attributes":{{"client":"a"}},"cost":{cost}}}',
        f'{{"attributes":{{"client":"a"}},"cost":{{"tokens":{cost}}}}}',
    ):
        answer = http.post(f"{weir.api}/v1/check", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400, body
        error = answer.json()["error"]
        assert error["code"] == "invalid_argument"
        assert "cost" in error["message"]
    assert weir.decide({"client": "a"}, 0, peek=True)["limits"][0]["remaining"] == 10


def test_case30_tokens_refill_continuously(start_weir, fake_clock):
    weir = start_weir(env=fake_clock.env)
    allowed = sum(weir.decide(**ad_hoc("k", "40000/min", cost=800))["allowed"] for _ in range(50))
    assert allowed == 50
    denied = weir.check(**ad_hoc("k", "40000/min", cost=800), status=429)
    assert denied.status_code == 429
    assert denied.json()["retry_after_ms"] == 1200
    assert denied.headers["retry-after"] == "2"


def test_case32_a_call_refused_by_one_limit_costs_another_nothing(start_weir, fake_clock):
    special = {"name": "special", "per": ["client"], "rate": "3/min", "match": {"path": "/special"}}
    group = {"name": "group", "per": ["client"], "rate": "10/min"}
    day = {"name": "day", "per": ["client"], "rate": "100/day"}
    second = {"name": "second", "per": ["client"], "rate": "10/s"}
    for limits in ([group, special], [special, group]):
        weir = start_weir(limits, env=fake_clock.env)
        calls = [weir.decide({"client": "a", "path": "/special"})["allowed"] for _ in range(5)]
        assert calls == [True] * 3 + [False] * 2
        calls = [weir.decide({"client": "a", "path": "/other"})["allowed"] for _ in range(8)]
        assert calls == [True] * 7 + [False]
    # A window for the day, so that nothing of it refills meanwhile.
    day |= {"algorithm": "fixed_window", "align": "calendar"}
    for limits in ([day, second], [second, day]):
        weir = start_weir(limits, env=fake_clock.env)
        admitted = []
        for _ in range(12):
            batch = [{"attributes": {"client": "a"}}] * 50
            results = http.post(f"{weir.api}/v1/check", json={"checks": batch}).json()["results"]
            admitted.append(sum(result["allowed"] for result in results))
            fake_clock.advance(1)
        assert admitted == [10] * 10 + [0] * 2


def test_case34_two_limits_on_one_client_have_their_own_counters(start_weir, fake_clock):
    limits = [
        {"name": "minute", "per": ["ip"], "rate": "5/min", "algorithm": "fixed_window", "align": "calendar"},
        {"name": "day", "per": ["ip"], "rate": "50/day", "algorithm": "fixed_window", "align": "calendar"},
    ]
    weir = start_weir(limits, env=fake_clock.env)
    admitted = []
    for _ in range(11):
        admitted.append(sum(weir.decide({"ip": "192.0.2.1"})["allowed"] for _ in range(6)))
        fake_clock.advance(60)
    assert admitted == [5] * 10 + [0]


@pytest.mark.parametrize(("per", "expected"), [(["client"], 10), (["client", "path"], 12)])
def test_case35_a_limit_is_shared_or_per_endpoint_as_its_per_says(start_weir, per, expected):
    weir = start_weir([{"name": "ten", "per": per, "rate": "10/hour"}])
    paths = ["/a"] * 6 + ["/b"] * 6
    assert sum(weir.decide({"client": "a", "path": path})["allowed"] for path in paths) == expected


def test_case40_an_absent_attribute_leaves_the_other_limits_in_force(start_weir):
    limits = [
        {"name": "tenant", "per": ["tenant"], "rate": "1/hour"},
        {"name": "client", "per": ["client"], "rate": "2/hour"},
    ]
    weir = start_weir(limits, attributes=["tenant"])
    answers = [weir.decide({"client": "a"}) for _ in range(3)]
    assert [answer["allowed"] for answer in answers] == [True, True, False]
    assert answers[2]["denied_by"] == ["client"]
    for body in ({}, {"attributes": {}}):
        assert http.post(f"{weir.api}/v1/check", json=body).status_code in (200, 400)


def test_case48_a_calendar_month_ends_with_the_month(start_weir, fake_clock):
    from datetime import UTC, datetime

    limits = [
        {"name": "month", "per": ["client"], "rate": "10/month", "algorithm": "fixed_window", "align": "calendar"}
    ]
    fake_clock.set(datetime(2026, 1, 1, tzinfo=UTC))
    weir = start_weir(limits, env=fake_clock.env)
    assert weir.decide({"client": "a"}, 10)["allowed"]
    fake_clock.set(datetime(2026, 1, 31, 0, 0, 1, tzinfo=UTC))
    assert weir.check({"client": "a"}, status=429).headers["retry-after"] == "86399"
    fake_clock.set(datetime(2026, 2, 1, tzinfo=UTC))
    assert weir.decide({"client": "a"})["allowed"]
    fake_clock.set(datetime(2028, 2, 29, 12, tzinfo=UTC))
    assert weir.decide({"client": "a"}, 10)["allowed"]
    assert weir.check({"client": "a"}, status=429).headers["retry-after"] == "43200"


def test_case52_retry_after_is_whole_seconds_and_enough(start_weir, fake_clock):
    limits = [{"name": "five", "per": ["client"], "rate": "5/min", "algorithm": "fixed_window", "align": "calendar"}]
    weir = start_weir(limits, env=fake_clock.env)  # The clock starts on a full minute.
    for _ in range(5):
        assert weir.decide({"client": "a"})["allowed"]
    fake_clock.advance(2.4)
    denied = weir.check({"client": "a"}, status=429)
    assert denied.status_code == 429
    assert denied.headers["retry-after"] == "58"
    fake_clock.advance(58)
    assert weir.decide({"client": "a"})["allowed"]

    bucket = ad_hoc("bucket", "10/s", burst=1)
    assert weir.decide(**bucket)["allowed"]
    denied = weir.check(**bucket, status=429)
    assert denied.headers["retry-after"] == "1"
    assert re.fullmatch(r"[1-9][0-9]*", denied.headers["retry-after"])
    fake_clock.advance(1)
    assert weir.decide(**bucket)["allowed"]


@pytest.mark.parametrize("form", ["seconds", "unix"])
def test_case53_reset_is_the_window_s_end_also_when_nothing_remains(start_weir, fake_clock, form):
    limits = [{"name": "two", "per": ["client"], "rate": "2/min", "algorithm": "fixed_window", "align": "calendar"}]
    weir = start_weir(limits, env=fake_clock.env, answers={"x_ratelimit_reset": form})
    fake_clock.advance(10)
    expected = "50" if form == "seconds" else str(int(fake_clock.unix) + 50)
    remaining = []
    for _ in range(4):
        answer = weir.get("/v1/models", key="a")
        assert answer.headers["x-ratelimit-reset"] == expected
        remaining.append(answer.headers["x-ratelimit-remaining"])
    assert remaining == ["1", "0", "0", "0"]


def test_case54_a_refusal_shows_the_limit_that_refused(start_weir):
    limits = [
        {"name": "minute", "per": ["client"], "rate": "5/min"},
        {"name": "year", "per": ["client"], "rate": "100000/year"},
    ]
    weir = start_weir(limits)
    answers = [weir.check({"client": "a"}, status=429) for _ in range(6)]
    assert answers[5].status_code == 429
    assert answers[5].json()["denied_by"] == ["minute"]
    assert 1 <= int(answers[5].headers["retry-after"]) <= 60


@pytest.mark.parametrize(("jitter", "least", "most", "values"), [("0s", 60, 60, 1), ("10s", 60, 70, 5)])
def test_case61_jitter_only_lengthens_the_announced_wait(start_weir, fake_clock, jitter, least, most, values):
    weir = start_weir(
        [{"name": "one", "per": [], "rate": "1/min"}], env=fake_clock.env, answers={"retry_jitter": jitter}
    )
    assert weir.get(key="first").status_code == 200
    for waits in (
        [int(weir.get(key=f"client-{i}").headers["retry-after"]) for i in range(100)],
        [int(weir.check({"client": f"{i}"}, status=429).headers["retry-after"]) for i in range(100)],
    ):
        assert least <= min(waits) and max(waits) <= most
        assert len(set(waits)) >= values
        if values == 1:
            assert set(waits) == {60}


def test_case70_joined_keys_do_not_collide(start_weir):
    weir = start_weir([{"name": "one", "per": ["tenant", "client"], "rate": "1/hour"}], attributes=["tenant"])
    pairs = [("ab", "c"), ("a", "bc"), ("a|b", "c"), ("a", "b|c"), ("a:b", "c"), ("a", "b:c"), ("a_b", ""), ("a", "b")]
    pairs += [("x}{y", "c"), ("x", "}{yc")]
    for first in (True, False):
        for tenant, client in pairs:
            assert weir.decide({"tenant": tenant, "client": client})["allowed"] is first, (tenant, client)


def test_case71_keys_of_any_bytes_are_distinct_or_refused(start_weir):
    weir = start_weir([{"name": "one", "per": ["client"], "rate": "1/hour"}])
    keys = ["", "a\r\nb", "a\x00b", "ab", "caf\u00e9", "cafe\u0301", "k" * 4096, "K" * 4096]
    with RawConnection(weir.address("api")) as connection:

        def check(body):
            connection.send(
                b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: "
                + str(len(body)).encode()
                + b"\r\n\r\n"
                + body
            )
            return connection.read_answer()

        for first in (True, False):
            for key in keys:
                answer = check(json.dumps({"attributes": {"client": key}}).encode())
                assert answer.status in (200, 400), key
                if answer.status == 200:
                    assert json.loads(answer.body)["allowed"] is first, key
        assert check(b'{"attributes":{"client":"\xff"}}').status == 400
        large = check(json.dumps({"attributes": {"client": "x" * (1 << 20)}}).encode())
        assert large.status in (200, 400)
        assert json.loads(check(b'{"attributes":{"client":"after"}}').body)["allowed"]


def test_case85_a_reservation_that_time_refilled_is_not_refunded_again(start_weir, fake_clock):
    limit = {"name": "tokens", "per": ["client"], "rate": "1000/min"}
    weir = start_weir([limit], env=fake_clock.env)
    held = weir.decide({"client": "a"}, 1000, reserve={"ttl": "5m"})
    fake_clock.advance(60)
    assert weir.decide({"client": "a"}, 1000)["allowed"]
    settled = http.post(f"{weir.api}/v1/settle", json={"reservation": held["reservation"], "actual": {"requests": 46}})
    assert settled.status_code == 200, settled.text
    assert weir.decide({"client": "a"}, 0, peek=True)["limits"][0]["remaining"] == 0


def test_settle_and_release_are_idempotent_and_unknown_ones_are_404(start_weir):
    weir = start_weir([{"name": "ten", "per": ["client"], "rate": "10/hour"}])
    held = weir.decide({"client": "a"}, 5, reserve=True)["reservation"]
    settle = {"reservation": held, "actual": {"requests": 2}}
    first = http.post(f"{weir.api}/v1/settle", json=settle)
    again = http.post(f"{weir.api}/v1/settle", json=settle)
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert weir.decide({"client": "a"}, 0, peek=True)["limits"][0]["remaining"] == 8
    for path in ("settle", "release"):
        body = {"reservation": "0" * 32} | ({"actual": {"requests": 1}} if path == "settle" else {})
        assert http.post(f"{weir.api}/v1/{path}", json=body).status_code == 404


def test_a_batch_answers_each_item_for_itself(start_weir):
    weir = start_weir([{"name": "one", "per": ["client"], "rate": "1/hour"}])
    checks = [{"attributes": {"client": "a"}}, {"attributes": {"nobody": "a"}}, {"attributes": {"client": "a"}}]
    answer = http.post(f"{weir.api}/v1/check", json={"checks": checks})
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert results[0]["allowed"] is True
    assert "nobody" in results[1]["error"]["message"]
    assert results[2]["allowed"] is False
    too_many = http.post(f"{weir.api}/v1/check", json={"checks": [checks[0]] * 1001})
    assert too_many.status_code == 400


def test_an_api_key_is_the_client_that_the_gateway_names(start_weir):
    weir = start_weir([{"name": "two", "per": ["client"], "rate": "2/hour"}])
    assert weir.get(key="sk-shared").status_code == 200
    assert weir.decide({"api_key": "sk-shared"})["allowed"]
    assert not weir.decide({"api_key": "sk-shared"})["allowed"]
    assert weir.get(key="sk-shared").status_code == 429


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "null", '{"attributes":[]}', '{"unknown":1}', '{"attributes":{"client":1}}', '{"peek":"yes"}'],
)
def test_bad_bodies_are_400_and_say_why(start_weir, body):
    weir = start_weir()
    answer = http.post(f"{weir.api}/v1/check", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_argument"
    assert answer.json()["error"]["message"]


def test_pipelined_requests_are_answered_in_order(start_weir):
    weir = start_weir([{"name": "ten", "per": ["client"], "rate": "10/hour"}])
    body = b'{"attributes":{"client":"a"}}'
    request = b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with RawConnection(weir.address("api")) as connection:
        connection.send(request * 12)
        remaining = [json.loads(connection.read_answer().body)["limits"][0]["remaining"] for _ in range(12)]
    assert remaining == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0]


def test_a_door_with_a_token_asks_for_it(start_weir):
    token = "api-token-0123456789"
    weir = start_weir(listen={"api": {"address": "127.0.0.1:0", "token": token}})
    body = {"attributes": {"client": "a"}}
    assert http.post(f"{weir.api}/v1/check", json=body).status_code == 401
    wrong = http.post(f"{weir.api}/v1/check", json=body, headers={"authorization": "Bearer wrong"})
    assert wrong.status_code == 401
    right = http.post(f"{weir.api}/v1/check", json=body, headers={"authorization": f"Bearer {token}"})
    assert right.status_code == 200


def test_doors_beyond_loopback_need_a_token(weir_command, tmp_path):
    for door in ("api", "admin"):
        path = tmp_path / f"{door}.yaml"
        path.write_text(f"listen: {{{door}: 0.0.0.0:0}}\n")
        run = weir_command("validate", path)
        assert run.returncode == 1
        assert "token" in run.stderr


def test_authorize_passes_and_refuses(start_weir):
    weir = start_weir(
        [{"name": "two", "per": ["ip", "path"], "rate": "2/hour"}], identity={"trusted_proxies": ["127.0.0.1/32"]}
    )
    headers = {
        "x-forwarded-method": "GET",
        "x-forwarded-uri": "/report?x=1",
        "x-forwarded-host": "example.com",
        "x-forwarded-for": "203.0.113.9",
    }

    def authorize(query="", **more):
        return http.get(f"{weir.api}/v1/authorize{query}", headers={**headers, **more})

    assert [authorize().status_code for _ in range(3)] == [200, 200, 429]
    denied = authorize()
    assert int(denied.headers["retry-after"]) >= 1
    assert denied.headers["x-ratelimit-limit"] == "2"
    assert authorize("?deny=403").status_code == 403
    assert authorize(**{"x-forwarded-uri": "/other"}).status_code == 200


def test_unknown_paths_and_methods_are_told(start_weir):
    weir = start_weir()
    assert http.get(f"{weir.api}/nothing").status_code == 404
    answer = http.get(f"{weir.api}/v1/check")
    assert answer.status_code == 405
    assert "POST" in answer.headers["allow"]


def test_head_gets_no_body(start_weir):
    weir = start_weir()
    answer = exchange(weir.address("ops"), "HEAD /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", True)
    assert answer.status == 200
    assert answer.body == b""
