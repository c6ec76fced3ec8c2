"""Leased limits over several nodes: bounds, round trips, and what becomes of a lease whose node ends."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import yaml
from servers import ROOT, http, wait_until

WINDOW = {
    "name": "window",
    "per": ["client"],
    "rate": "1000/day",
    "algorithm": "fixed_window",
    "consistency": "leased",
}
BUCKET = {"name": "bucket", "per": ["client"], "rate": "1000/day", "consistency": "leased"}


def load(node, batches, size=20, client="alice"):
    """Calls in batches over one connection: (passed, answers by source)."""
    check = {"attributes": {"client": client}}
    passed, sources = 0, {}
    with httpx.Client(timeout=60) as connection:
        for _ in range(batches):
            answer = connection.post(f"{node.api}/v1/check", json={"checks": [check] * size})
            assert answer.status_code == 200
            for result in answer.json()["results"]:
                passed += result["allowed"]
                sources[result["source"]] = sources.get(result["source"], 0) + 1
    return passed, sources


def load_all(nodes, batches, **more):
    with ThreadPoolExecutor(len(nodes)) as threads:
        loads = list(threads.map(lambda node: load(node, batches, **more), nodes))
    sources = {}
    for _, of_node in loads:
        for source, count in of_node.items():
            sources[source] = sources.get(source, 0) + count
    return sum(passed for passed, _ in loads), sources


def warm_up(node, client="alice"):
    """Calls until leases pay for them; how many passed."""
    passed = 0

    def paid():
        nonlocal passed
        answer = node.decide({"client": client})
        passed += answer["allowed"]
        return answer["source"] == "lease"

    wait_until(paid, "a lease pays")
    return passed


def remaining(node, client="alice"):
    return node.decide({"client": client}, 0, peek=True)["limits"][0]["remaining"]


def test_case81_four_processes_admit_exactly_a_leased_window(shared_store, start_node):
    nodes = [start_node(shared_store, [WINDOW]) for _ in range(4)]
    passed, sources = load_all(nodes, 100)
    assert passed == 1000
    assert set(sources) <= {"redis", "lease", "deny_cache"}
    assert sources["lease"] > 100


def test_case81_four_processes_never_over_admit_a_leased_bucket(shared_store, start_node):
    nodes = [start_node(shared_store, [BUCKET]) for _ in range(4)]
    passed, sources = load_all(nodes, 60)
    assert sources["lease"] > 100
    # Half of the burst may be set apart for the nodes. What they set free comes back at the limit's rate.
    assert 500 <= passed <= 1000


@pytest.mark.parametrize("consistency", ["leased", "leased_fast"])
def test_a_hot_key_takes_a_round_trip_for_fifty_decisions_at_most(shared_store, start_node, consistency):
    limits = [{"name": "hot", "per": ["client"], "rate": "1000000/s", "consistency": consistency}]
    nodes = [start_node(shared_store, limits, threads=1) for _ in range(4)]
    for node in nodes:
        warm_up(node)
    before = shared_store.decision_calls()
    passed, sources = load_all(nodes, 200)
    assert passed == 4 * 200 * 20
    assert (shared_store.decision_calls() - before) / passed <= 0.02
    assert sources["lease"] / passed >= 0.98
    lease_trips = sum(node.metric("weir_store_request_duration_seconds_count", op="lease") for node in nodes)
    assert 0 < lease_trips <= shared_store.decision_calls()
    for node in nodes:
        assert node.metric("weir_decisions_total", source="lease", outcome="allowed") > 3_900
        assert node.metric("weir_store_request_duration_seconds_count", op="decide") == 0


def test_a_refusal_that_the_lease_could_pay_by_now_is_short(shared_store, start_node):
    """Of calls that are under way together, some are refused by the store while a refill brings this node units."""
    node = start_node(shared_store, [{**WINDOW, "rate": "600/day"}], threads=1)
    for client in ("a", "b", "c"):
        costs = [20 if i % 3 == 0 else 1 for i in range(80)]
        checks = [{"attributes": {"client": client}, "cost": cost} for cost in costs]
        with ThreadPoolExecutor(16) as threads:
            answers = list(threads.map(lambda check: http.post(f"{node.api}/v1/check", json=check).json(), checks))
        used = sum(cost for cost, answer in zip(costs, answers, strict=True) if answer["allowed"])
        for cost, answer in zip(costs, answers, strict=True):
            if not answer["allowed"] and answer["limits"][0]["remaining"] >= cost:
                assert answer["retry_after_ms"] <= 1000
        # What is left is told as it is, once nothing is under way.
        assert node.decide({"client": client}, peek=True)["limits"][0]["remaining"] <= 600 - used


def test_leased_fast_admits_half_the_burst_on_top_at_most(shared_store, start_node):
    nodes = [start_node(shared_store, [{**BUCKET, "consistency": "leased_fast"}]) for _ in range(4)]
    passed, _ = load_all(nodes, 60)
    assert 1000 - 10 <= passed <= 1000  # From a start without leases nothing comes on top.


def test_case82_a_node_that_ends_gives_its_leases_back(shared_store, start_node):
    first, second = (start_node(shared_store, [WINDOW]) for _ in range(2))
    passed = warm_up(first)
    assert first.stop() == 0
    assert remaining(second) == 1000 - passed
    more, _ = load(second, 60)
    assert passed + more == 1000


def test_case84b_what_a_killed_node_held_of_a_bucket_comes_back_and_no_more(shared_store, start_node):
    fast = {"name": "bucket", "per": ["client"], "rate": "100/s", "burst": 1000, "consistency": "leased"}
    doomed, other = start_node(shared_store, [fast]), start_node(shared_store, [fast])
    began = time.monotonic()
    passed = warm_up(doomed)
    doomed.signal(signal.SIGKILL)
    doomed.wait()
    # Its share is set apart until its term ends (2 s), and then refills like all that was used.
    wait_until(lambda: remaining(other) == 1000, "all units are there again", 30)
    more, _ = load(other, 100)
    assert more + passed <= 1000 + 100 * (time.monotonic() - began) + 1
    assert more >= 500


def test_case84b_a_killed_node_leaves_the_window_never_over_admitted(shared_store, start_node):
    doomed, other = start_node(shared_store, [WINDOW]), start_node(shared_store, [WINDOW])
    passed = warm_up(doomed)
    doomed.signal(signal.SIGKILL)
    doomed.wait()
    more, _ = load(other, 100)
    # What it held when it died is lost until the window ends.
    assert 1000 - 500 <= passed + more <= 1000


def test_case42_a_reload_fences_leases_and_admits_exactly_the_difference(shared_store, start_node):
    nodes = [start_node(shared_store, [WINDOW]) for _ in range(2)]
    passed, _ = load_all(nodes, 20)
    for node in nodes:
        node.config_path.write_text(node.config_path.read_text().replace("1000/day", "2000/day"))
        assert node.reload().status_code == 200

    def all_passed():
        nonlocal passed
        passed += load_all(nodes, 20)[0]
        assert passed <= 2000
        return passed == 2000

    wait_until(all_passed, "every unit of the new limit has been used")
    assert load_all(nodes, 20)[0] == 0


def test_case80_without_the_store_leases_are_spent_before_on_failure(start_redis, start_node):
    server = start_redis()
    limits = [
        {"name": "hot", "per": ["client"], "rate": "1000/s", "consistency": "leased", "on_failure": "closed"},
    ]
    breaker = {"failures": 1, "open_for": "1h"}
    node = start_node(server, limits, store={"timeout": "100ms", "breaker": breaker}, threads=1)
    warm_up(node)
    load(node, 5)
    server.kill()
    passed, sources = load(node, 50)
    assert sources["lease"] > 0
    assert sources["fallback"] > 0
    assert passed == sources["lease"]
    assert passed <= 500  # Half the burst, of one node that holds all there is to hold.
    wait_until(lambda: node.decide({"client": "alice"})["source"] == "fallback", "the lease's term is over", 10)


def test_settles_and_resets_of_a_leased_limit(shared_store, start_node):
    first, second = (start_node(shared_store, [BUCKET]) for _ in range(2))
    held = first.decide({"client": "alice"}, 100, reserve=True)
    assert held["source"] == "redis"
    assert remaining(second) == 900
    body = {"reservation": held["reservation"], "actual": {"requests": 40}}
    for _ in range(2):  # A repeat changes nothing.
        assert http.post(f"{first.api}/v1/settle", json=body).status_code == 200
    assert remaining(second) == 960
    warm_up(first)
    reset = http.post(f"{first.admin}/admin/reset", json={"limit": "bucket", "attributes": {"client": "alice"}})
    assert reset.status_code == 200, reset.text
    state = http.get(f"{second.admin}/admin/state", params={"client": "alice"}).json()["limits"]
    assert state[0]["remaining"] == 1000


def test_a_leased_calendar_window_follows_the_servers_clock(shared_store, start_node):
    limits = [{**WINDOW, "rate": "1000/month", "align": "calendar", "timezone": "Europe/Berlin"}]
    nodes = [start_node(shared_store, limits) for _ in range(2)]
    passed, sources = load_all(nodes, 60)
    assert passed == 1000
    assert sources["lease"] > 0


def test_the_gateway_says_that_a_lease_paid(shared_store, start_node):
    limits = [{"name": "hot", "per": ["client"], "rate": "100000/s", "consistency": "leased"}]
    node = start_node(shared_store, limits, threads=1)

    def logged():
        assert node.get(key="k").status_code == 200
        return node.metric("weir_decisions_total", door="gateway", source="lease")

    wait_until(logged, "a call is paid from a lease")
    assert any(line.get("source") == "lease" for line in node.log_lines())


def test_limits_that_cannot_be_leased_are_refused_with_their_place(weir_command, tmp_path):
    path = tmp_path / "weir.yaml"

    def refusal(limit):
        path.write_text(
            "store: {kind: redis, url: redis://127.0.0.1}\nidentity: {secret: tests-share-this-secret}\n"
            f"limits:\n  - {{name: a, {limit}, consistency: leased}}\n"
        )
        checked = weir_command("validate", path)
        assert checked.returncode == 1
        return checked.stderr.strip()

    assert refusal("rate: 5/min, algorithm: sliding_window") == (
        f"{path}:4:68: limit `a`: consistency `leased` is for token_bucket and fixed_window, "
        "not for sliding_window; write `exact`"
    )
    assert refusal("rate: 9007199254740881/day") == (
        f"{path}:4:5: limit `a`: rate and burst of a leased limit must fit whole ticks below 2^49; "
        "write `consistency: exact`"
    )


def test_the_example_with_a_leased_limit_shares_it(shared_store, start_weir):
    text = (ROOT / "examples" / "redis" / "leased.yaml").read_text()
    config = yaml.safe_load(text.replace("${WEIR_SECRET}", "tests-share-this-secret"))
    config["listen"] = {door: "127.0.0.1:0" for door in config["listen"]}
    config["store"]["url"] = shared_store.url
    config["store"]["timeout"] = "500ms"
    config["timeouts"] = {"drain_delay": "0s"}
    nodes = [start_weir(text=yaml.safe_dump(config)) for _ in range(2)]
    for node in nodes:
        warm_up(node)
    passed, sources = load_all(nodes, 20)
    assert passed == 2 * 20 * 20
    assert sources["lease"] > 0.9 * passed
