"""Nodes that share their limits through Redis and Valkey: exactness, keys, failures, recovery."""

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fake_clock import shifted_clock
from servers import http, wait_until

HOURLY = [{"name": "hourly", "per": ["client"], "rate": "100/h"}]


def allowed(node, calls, client="alice", **more):
    return sum(node.decide({"client": client}, **more)["allowed"] for _ in range(calls))


def test_case81_four_processes_with_sixteen_threads_admit_exactly_the_limit(shared_store, start_node):
    nodes = [start_node(shared_store, HOURLY) for _ in range(4)]
    body = {"attributes": {"client": "alice"}}

    def ask(node):
        with httpx.Client(timeout=30) as client:
            answers = [client.post(f"{node.api}/v1/check", json=body).json() for _ in range(16)]
        assert {answer["source"] for answer in answers} <= {"redis", "deny_cache"}
        return sum(answer["allowed"] for answer in answers)

    with ThreadPoolExecutor(64) as threads:
        passed = list(threads.map(ask, [node for node in nodes for _ in range(16)]))
    assert sum(passed) == 100


def test_case25_a_nodes_own_clock_has_no_say(shared_store, start_node):
    ten = [{"name": "ten", "per": ["client"], "rate": "10/min"}]
    nodes = [start_node(shared_store, ten, env=shifted_clock(30)), start_node(shared_store, ten)]
    passed = sum(nodes[i % 2].decide({"client": "a"})["allowed"] for i in range(20))
    assert passed == 10


def test_case74_every_key_expires_and_names_nobody(shared_store, start_node):
    limits = [
        {"name": "bucket", "per": ["client"], "rate": "60/min"},
        {"name": "log", "per": ["client"], "rate": "60/min", "algorithm": "sliding_window"},
        {"name": "counter", "per": ["client"], "rate": "60/min", "algorithm": "sliding_counter"},
        {"name": "window", "per": ["client"], "rate": "60/min", "algorithm": "fixed_window"},
        {"name": "month", "per": ["client"], "rate": "60/month", "algorithm": "fixed_window", "align": "calendar"},
        {"name": "parallel", "per": ["client"], "parallel": 5},
    ]
    node = start_node(shared_store, limits)
    assert node.decide({"client": "alice@example.com"}, reserve=True)["allowed"]
    keys = shared_store.keys()
    assert len(keys) >= len(limits)
    for key in keys:
        assert re.fullmatch(rb"weir:1:\{[0-9a-f]{16}\}:[0-9a-f]{32}|weir:1:nodes", key), key
        ttl_ms = shared_store.client.pttl(key)
        assert 1 <= ttl_ms <= 32 * 86_400_000, (key, ttl_ms)
    tags = {key.split(b"}")[0] for key in keys if b"{" in key}
    assert len(tags) == 1
    bucket = start_node(shared_store, [{"name": "alone", "per": ["client"], "rate": "60/min"}])
    before = set(shared_store.keys())
    bucket.decide({"client": "bob"})
    (key,) = set(shared_store.keys()) - before
    assert 1 <= shared_store.client.pttl(key) <= 120_000


def test_case77_flushed_scripts_come_back_by_themselves(shared_store, start_node):
    node = start_node(shared_store, [{"name": "ten", "per": ["client"], "rate": "10/h"}])
    assert allowed(node, 4) == 4
    shared_store.client.script_flush()
    answers = [node.decide({"client": "alice"}) for _ in range(7)]
    assert [answer["allowed"] for answer in answers] == [True] * 6 + [False]
    assert {answer["source"] for answer in answers[:6]} == {"redis"}


def test_case82_a_rolling_restart_keeps_what_was_used(shared_store, start_node):
    ten = [{"name": "ten", "per": ["client"], "rate": "10/h"}]
    first = start_node(shared_store, ten)
    assert allowed(first, 3) == 3
    second = start_node(shared_store, ten)
    assert first.stop() == 0
    assert second.decide({"client": "alice"}, 0)["limits"][0]["remaining"] == 7


def test_case42_a_raised_rate_gives_exactly_the_difference(shared_store, start_node):
    node = start_node(shared_store, [{"name": "hourly", "per": ["client"], "rate": "10/h"}])
    assert allowed(node, 50) == 10
    config = node.config_path.read_text().replace("10/h", "20/h")
    node.config_path.write_text(config)
    assert node.reload().status_code == 200
    answers = [node.decide({"client": "alice"}) for _ in range(15)]
    assert [answer["allowed"] for answer in answers] == [True] * 10 + [False] * 5
    assert answers[0]["limits"][0]["quota"] == 20


def test_case32_layers_of_several_nodes_are_charged_all_or_none(shared_store, start_node):
    limits = [
        {"name": "group", "rate": "10/h"},
        {"name": "special", "per": ["client"], "rate": "3/h", "algorithm": "fixed_window"},
    ]
    nodes = [start_node(shared_store, limits) for _ in range(2)]
    assert sum(nodes[i % 2].decide({"client": "s"})["allowed"] for i in range(5)) == 3
    left = [f"c{i}" for i in range(8)]
    assert sum(nodes[i % 2].decide({"client": c})["allowed"] for i, c in enumerate(left)) == 7


def test_case85_a_settle_gives_back_what_time_has_not(shared_store, start_node):
    limits = [{"name": "tokens", "per": ["client"], "rate": "1000 tokens/h"}]
    nodes = [start_node(shared_store, limits, listen={"gateway": None}) for _ in range(2)]
    held = nodes[0].decide({"client": "a"}, {"tokens": 1000}, reserve=True)
    assert nodes[1].decide({"client": "a"}, {"tokens": 1})["allowed"] is False
    body = {"reservation": held["reservation"], "actual": {"tokens": 46}}
    for _ in range(2):  # A repeat changes nothing.
        settled = http.post(f"{nodes[0].api}/v1/settle", json=body)
        assert settled.status_code == 200, settled.text
        assert settled.json()["charged"] == {"tokens": 46}
    wait_until(
        lambda: nodes[1].decide({"client": "a"}, {"tokens": 0})["limits"][0]["remaining"] == 954,
        "the other node sees what came back",
    )
    overrun = nodes[1].decide({"client": "a"}, {"tokens": 954}, reserve=True)
    body = {"reservation": overrun["reservation"], "actual": {"tokens": 1454}}
    assert http.post(f"{nodes[1].api}/v1/settle", json=body).status_code == 200
    debt = nodes[0].decide({"client": "a"}, {"tokens": 1})
    assert not debt["allowed"]
    assert debt["limits"][0]["remaining"] == 0
    assert 1_790_000 <= debt["retry_after_ms"] <= 1_804_000  # 501 tokens at 1000/h.


def test_case84b_the_slots_of_a_killed_node_come_back_after_their_time(shared_store, start_node):
    limits = [{"name": "slots", "per": ["client"], "parallel": 5}]
    doomed, other = start_node(shared_store, limits), start_node(shared_store, limits)
    for _ in range(5):
        assert doomed.decide({"client": "a"}, reserve={"ttl": "2s"})["allowed"]
    assert not other.decide({"client": "a"}, reserve={"ttl": "2s"})["allowed"]
    doomed.signal(signal.SIGKILL)
    doomed.wait()
    wait_until(lambda: other.decide({"client": "a"}, reserve={"ttl": "60s"})["allowed"], "a slot is free again", 10)
    assert sum(other.decide({"client": "a"}, reserve={"ttl": "60s"})["allowed"] for _ in range(9)) == 4


def test_parallel_calls_through_two_gateways_share_their_slots(shared_store, start_node):
    limits = [{"name": "slots", "per": ["client"], "parallel": 1}]
    first, second = (start_node(shared_store, limits) for _ in range(2))
    body = {"model": "mock-1", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    headers = {"authorization": "Bearer k", "x-mock-pace-ms": "200"}
    with httpx.stream("POST", f"{first.gateway}/v1/chat/completions", json=body, headers=headers) as stream:
        assert stream.status_code == 200
        assert second.get(key="k").status_code == 429
        assert second.get(key="other").status_code == 200
    wait_until(lambda: second.get(key="k").status_code == 200, "the slot is free once the stream has ended")


def test_a_flood_of_denied_calls_does_not_reach_the_store(shared_store, start_node):
    node = start_node(shared_store, [{"name": "one", "per": ["client"], "rate": "1/h"}], threads=1)
    assert allowed(node, 1) == 1
    node.decide({"client": "alice"})
    before = shared_store.decision_calls()
    began = time.monotonic()
    with httpx.Client() as client:
        for _ in range(300):
            answer = client.post(f"{node.api}/v1/check", json={"attributes": {"client": "alice"}}).json()
            assert not answer["allowed"]
            assert answer["retry_after_ms"] > 3_590_000
    took_s = time.monotonic() - began
    # Denials are believed for a tenth of a second, since a settle elsewhere may end them.
    assert shared_store.decision_calls() - before <= took_s / 0.1 + 2


@pytest.mark.parametrize(
    ("on_failure", "admitted"),
    [("open", 8), ("closed", 0), ("local_share", 2)],
)
def test_case80_an_absent_store_leaves_each_limit_to_its_own_terms(start_redis, start_node, on_failure, admitted):
    server = start_redis()
    limits = [{"name": "four", "per": ["client"], "rate": "4/h", "on_failure": on_failure}]
    node = start_node(server, limits, store={"timeout": "50ms", "nodes": 2})
    assert allowed(node, 1, client="before") == 1
    assert server.stop() == 0
    answers = [node.decide({"client": "a"}) for _ in range(8)]
    assert sum(answer["allowed"] for answer in answers) == admitted
    assert {answer["source"] for answer in answers} == {"fallback"}
    assert node.metric("weir_decisions_total", source="fallback") == 8


def test_case80_a_paused_store_delays_nobody_for_long_and_serves_again_within_a_second(start_redis, start_node):
    server = start_redis()
    limits = [{"name": "many", "per": ["client"], "rate": "1000000/h", "on_failure": "open"}]
    node = start_node(server, limits, store={"timeout": "50ms"}, threads=1)
    assert node.decide({"client": "a"})["source"] == "redis"
    server.pause()
    slowest = 0.0
    with httpx.Client(timeout=30) as client:
        for _ in range(300):
            began = time.monotonic()
            answer = client.post(f"{node.api}/v1/check", json={"attributes": {"client": "a"}})
            slowest = max(slowest, time.monotonic() - began)
            assert answer.status_code == 200
            assert answer.json()["allowed"]
            assert answer.json()["source"] == "fallback"
    assert slowest < 5  # A bound against waiting for the store; the benchmark measures how long it is.
    server.signal(signal.SIGCONT)
    wait_until(lambda: node.decide({"client": "a"})["source"] == "redis", "the store decides again", 5)


def test_case82_nodes_without_a_store_admit_their_share_and_never_nothing(start_redis, start_node, fake_clock):
    server = start_redis()
    limits = [{"name": "three", "per": ["client"], "rate": "3/s"}]
    breaker = {"failures": 1, "open_for": "1h"}
    node = start_node(server, limits, store={"nodes": 5, "breaker": breaker}, env=fake_clock.env, threads=1)
    assert server.stop() == 0

    def breaker_is_open():
        fake_clock.advance(0.1)
        return node.metric("weir_store_breaker_state") == 1

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(node.decide, {"client": "other"})  # Waits for the store until its time is up.
        wait_until(breaker_is_open, "the breaker is open")
        assert first.result()["source"] == "fallback"
    passed = 0
    for _ in range(100):
        answer = node.decide({"client": "a"})
        assert answer["source"] == "fallback"
        passed += answer["allowed"]
        fake_clock.advance(0.1)
    assert passed == 6


def test_case21_limits_of_nothing_deny_over_a_store_too(shared_store, start_node):
    limits = [{"name": "none", "per": ["client"], "rate": "0/min", "match": {"path": "/closed"}}]
    node = start_node(shared_store, limits)
    assert not any(node.decide({"client": "a", "path": "/closed"})["allowed"] for _ in range(20))
    assert node.decide({"client": "a", "path": "/open"})["allowed"]


def test_two_tiers_a_local_bucket_before_a_shared_window(shared_store, start_node):
    limits = [
        {"name": "burst", "per": ["client"], "rate": "2/h", "consistency": "local"},
        {"name": "window", "per": ["client"], "rate": "100/h", "algorithm": "fixed_window"},
    ]
    first, second = (start_node(shared_store, limits) for _ in range(2))
    assert allowed(first, 5) == 2
    assert allowed(second, 5) == 2
    before = shared_store.decision_calls()
    denied = first.decide({"client": "alice"})
    assert denied["denied_by"] == ["burst"]
    assert shared_store.decision_calls() == before  # What this node denies by itself costs the store nothing.
    with_room = [{"name": "window", "per": ["client"], "rate": "100/h", "algorithm": "fixed_window"}]
    third = start_node(shared_store, with_room)
    assert third.decide({"client": "alice"}, 0)["limits"][0]["remaining"] == 96


def test_batches_settles_and_resets_over_a_store(shared_store, start_node):
    node = start_node(shared_store, HOURLY)
    items = [{"attributes": {"client": "a"}, "cost": 60}, {"attributes": {"client": "a"}, "cost": 41}, {"cost": -1}]
    results = http.post(f"{node.api}/v1/check", json={"checks": items}).json()["results"]
    assert [result.get("allowed") for result in results] == [True, False, None]
    assert results[2]["error"]["code"] == "invalid_argument"
    state = http.get(f"{node.admin}/admin/state", params={"client": "a"}).json()["limits"]
    assert [(limit["name"], limit["remaining"]) for limit in state] == [("hourly", 40)]
    reset = http.post(f"{node.admin}/admin/reset", json={"limit": "hourly", "attributes": {"client": "a"}})
    assert reset.status_code == 200, reset.text
    assert node.decide({"client": "a"}, 0)["limits"][0]["remaining"] == 100
    rule = {"key": "k", "rule": {"rate": "3/h", "burst": 3}}
    assert [node.decide(**rule)["allowed"] for _ in range(4)] == [True, True, True, False]


def test_a_wrong_password_is_told_apart_and_never_shown(start_redis, start_node):
    server = start_redis("redis", "--requirepass", "right-password")
    server_url = f"redis://:wrong-password@127.0.0.1:{server.port}/0"
    node = start_node(server, HOURLY, store={"url": server_url, "on_failure": "closed"})
    assert not node.decide({"client": "a"})["allowed"]
    wait_until(lambda: "WRONGPASS" in "\n".join(node.stderr), "the log says why")
    shown = "\n".join([*node.stderr, *node.stdout, node.metrics(), http.get(f"{node.api}/v1/limits").text])
    assert "wrong-password" not in shown


def test_nodes_count_each_other_and_share_the_limits_when_the_store_goes(start_redis, start_node):
    server = start_redis()
    limits = [{"name": "four", "per": ["client"], "rate": "4/h"}]
    nodes = [start_node(server, limits, store={"timeout": "50ms"}) for _ in range(2)]
    for node in nodes:
        wait_until(lambda node=node: node.metric("weir_store_nodes") == 2, "both nodes are counted")
    assert server.stop() == 0
    assert [allowed(node, 5) for node in nodes] == [2, 2]


def registered(server):
    return server.client.zcard("weir:1:nodes")


def test_a_node_that_shuts_down_leaves_and_one_that_is_killed_is_forgotten(start_redis, start_node):
    server = start_redis()
    nodes = [start_node(server, HOURLY) for _ in range(3)]
    wait_until(lambda: registered(server) == 3, "all nodes are registered")
    assert nodes[0].stop() == 0
    assert registered(server) == 2
    nodes[1].kill()
    assert registered(server) == 2
    wait_until(lambda: registered(server) == 1, "the killed node is forgotten", 20)
    wait_until(lambda: nodes[2].metric("weir_store_nodes") == 1, "and not reckoned with any more", 20)


def test_case79_layers_in_a_cluster_stay_exact_while_slots_move(redis_cluster, start_node):
    limits = [
        {"name": "global", "rate": "1000000/day", "algorithm": "fixed_window"},
        {"name": "per-ip", "per": ["ip"], "rate": "1000000/h"},
        {"name": "per-client", "per": ["client"], "rate": "5/h"},
        {"name": "per-endpoint", "per": ["client", "path"], "rate": "100/h"},
    ]
    nodes = [start_node(redis_cluster, limits, store={"timeout": "5s"}) for _ in range(2)]
    users = [f"user-{i}" for i in range(60)]

    def six_calls(user):
        call = {"client": user, "ip": "192.0.2.7", "path": "/v1/chat"}
        return [nodes[i % 2].decide(call) for i in range(6)]

    first, second = redis_cluster.servers[:2]
    with ThreadPoolExecutor(8) as threads:
        calls = [threads.submit(six_calls, user) for user in users]
        for slot in range(0, 5000, 100):  # Of the first server, which holds 0 to 5460.
            redis_cluster.move_slot(slot, first, second)
        answers = [call.result() for call in calls]
    for six in answers:
        assert {answer["source"] for answer in six} <= {"redis", "deny_cache"}
        assert [answer["allowed"] for answer in six] == [True] * 5 + [False], six[-1]
        assert all(limit["remaining"] >= 0 for answer in six for limit in answer["limits"])

    def left():
        limits = nodes[0].decide({"client": "user-0", "ip": "192.0.2.7"}, 0)["limits"]
        return next(limit["remaining"] for limit in limits if limit["name"] == "global")

    wait_until(lambda: left() == 1_000_000 - 5 * len(users), "what denied calls were charged is given back")


@pytest.mark.parametrize(("per", "expected"), [([], 10), (["client"], 10), (["path"], 12), (["client", "path"], 12)])
def test_case35_a_limit_means_the_same_over_a_store(shared_store, start_node, per, expected):
    nodes = [start_node(shared_store, [{"name": "ten", "per": per, "rate": "10/day"}]) for _ in range(2)]
    paths = ["/a"] * 6 + ["/b"] * 6
    calls = enumerate(paths)
    assert sum(nodes[i % 2].decide({"client": "a", "path": path})["allowed"] for i, path in calls) == expected


def test_case70_joined_keys_do_not_collide_in_a_store(shared_store, start_node):
    limits = [{"name": "one", "per": ["tenant", "client"], "rate": "1/day"}]
    nodes = [start_node(shared_store, limits, attributes=["tenant"]) for _ in range(2)]
    pairs = [("ab", "c"), ("a", "bc"), ("a|b", "c"), ("a", "b|c"), ("a:b", "c"), ("a", "b:c"), ("a_b", ""), ("a", "b")]
    pairs += [("x}{y", "c"), ("x", "}{yc"), ("{x}", "y"), ("x", "{y}")]
    for node, first in zip(nodes, (True, False), strict=True):
        for tenant, client in pairs:
            assert node.decide({"tenant": tenant, "client": client})["allowed"] is first, (tenant, client)
    assert len(shared_store.keys()) == len(pairs) + 1  # And the nodes' own.
