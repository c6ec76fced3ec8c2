"""Several nodes whose store fails: masters change, memory runs out, the network between breaks, scripts vanish."""

import signal
import time

import pytest
from redis_servers import FLAVOURS, RedisServer
from servers import PATIENCE_S, wait_until
from steady_load import SteadyLoad
from store_proxy import REPLIES

# So slow that nothing comes back by time while a test runs.
DAILY = [{"name": "daily", "per": ["client"], "rate": "300/day"}]
UNLIMITED_BY_COUNT = [{"name": "many", "per": ["client"], "rate": "1000000/day", "on_failure": "open"}]
# It is a second where nothing else runs, as `make bench` measures; the rest is for a busy machine.
RECOVERY_S = 2 * max(1, PATIENCE_S / 30)


def decide_source(node, client="probe"):
    return node.decide({"client": client}, 0)["source"]


def remaining(node, client="alice"):
    (limit,) = node.decide({"client": client}, 0)["limits"]
    return limit["remaining"]


def by_source(answers):
    """How many of the answers were admitted, by who gave them."""
    admitted = {}
    for answer in answers:
        admitted[answer["source"]] = admitted.get(answer["source"], 0) + answer["allowed"]
    return admitted


# --- Masters that change.


@pytest.mark.parametrize("change", ["killed", "demoted"])
def test_case78_a_change_of_masters_under_load(redis_sentinels, start_node, change):
    nodes = [start_node(redis_sentinels, DAILY, store={"timeout": "200ms", "nodes": 3}) for _ in range(3)]
    for node in nodes:
        wait_until(lambda node=node: decide_source(node) == "redis", "the node has found the master")
    old = redis_sentinels.servers[0]
    with SteadyLoad(nodes, pace_s=0.03) as load:
        wait_until(lambda: load.admitted("redis") >= 60, "some calls have passed")
        wait_until(lambda: redis_sentinels.lag() < 4096, "the replica has kept up")
        changed_at = time.monotonic()
        if change == "killed":
            old.signal(signal.SIGKILL)
        else:
            redis_sentinels.fail_over()
        wait_until(lambda: redis_sentinels.master_port() != old.port, "a Sentinel names the new master")
        wait_until(redis_sentinels.servers[1].is_master, "the new master takes writes")
        named_at = time.monotonic()
        for number in range(len(nodes)):
            wait_until(
                lambda number=number: any(
                    answer.node == number and answer.source == "redis" for answer in load.since(named_at)
                ),
                "the new master decides",
                RECOVERY_S,
            )
        wait_until(lambda: not load.since(time.monotonic() - 0.5)[-1].allowed, "the limit is used up", 60)
    assert load.statuses() == {200}
    assert {answer.source for answer in load.answers} <= {"redis", "deny_cache", "fallback"}
    if change == "killed":
        assert load.admitted("fallback") > 0, "nobody waited for the failover"
    # What the old master had not passed on is admitted again, and a call whose answer it could not give any more is
    # not: at most those that were asked for around the change.
    around = sum(abs(answer.sent_at - changed_at) < 1 for answer in load.answers)
    assert 300 - around <= load.admitted("redis") <= 300 + around
    assert load.admitted("fallback") <= 300


def test_case80_a_killed_server_that_returns_under_load(start_redis, start_node, tmp_path, started):
    server = start_redis()
    store = {"timeout": "100ms", "connections": 1}
    nodes = [start_node(server, UNLIMITED_BY_COUNT, store=store) for _ in range(2)]
    with SteadyLoad(nodes, pace_s=0.005, threads=4) as load:
        wait_until(lambda: load.admitted("redis") >= 100, "some calls have passed")
        server.kill()
        wait_until(lambda: load.admitted("fallback") >= 100, "calls pass without a store")
        again = RedisServer("redis", tmp_path, port=server.port)
        started.append(again)
        returned_at = time.monotonic()
        for number in range(len(nodes)):
            wait_until(
                lambda number=number: any(
                    answer.node == number and answer.source == "redis" for answer in load.since(returned_at)
                ),
                "the store decides again",
                RECOVERY_S,
            )
        connections = [client for client in again.client.client_list() if client["name"] == "weir"]
    assert load.statuses() == {200}
    assert load.count(allowed=False) == 0
    assert len(connections) <= 2 * 2  # One for each loop of each node.
    attempts = again.client.info("stats")["total_connections_received"]
    assert attempts <= 2 * 2 + 40  # No storm. The rest is ours.


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_case77_scripts_that_vanish_under_load_cost_nobody_an_answer(start_redis, start_node, flavour):
    server = start_redis(flavour)
    nodes = [start_node(server, DAILY, store={"timeout": "5s"}) for _ in range(3)]
    with SteadyLoad(nodes, pace_s=0.005, threads=2) as load:
        for passed in range(20, 300, 20):
            wait_until(lambda passed=passed: load.admitted("redis") >= passed, "calls pass")
            server.client.script_flush()
        wait_until(lambda: load.count(allowed=False) >= 20, "the limit is used up")
    assert load.statuses() == {200}
    assert {answer.source for answer in load.answers} <= {"redis", "deny_cache"}
    assert load.admitted("redis") == 300


# --- A store that is full.


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_case80_a_full_store_leaves_each_limit_to_its_own_terms_until_there_is_room(start_redis, start_node, flavour):
    server = start_redis(flavour, "--maxmemory-policy", "noeviction")
    # One loop each: every loop has a breaker of its own.
    share = start_node(server, DAILY, store={"nodes": 3}, threads=1)
    closed = start_node(server, DAILY, store={"on_failure": "closed"}, threads=1)
    assert [share.decide({"client": "alice"})["source"] for _ in range(10)] == ["redis"] * 10
    server.client.set("ballast", b"x" * (16 << 20))
    server.client.config_set("maxmemory", 8 << 20)
    assert by_source(share.decide({"client": "alice"}) for _ in range(150)) == {"fallback": 100}
    assert by_source(closed.decide({"client": "alice"}) for _ in range(10)) == {"fallback": 0}
    assert closed.check({"client": "alice"}, status=429).headers["x-weir-source"] == "fallback"
    server.client.delete("ballast")
    for node in (share, closed):
        wait_until(lambda node=node: node.decide({"client": "b"})["source"] == "redis", "it decides again", RECOVERY_S)
    assert remaining(share) == remaining(closed) == 290  # What was refused for want of memory was not charged.


# --- A network that breaks between one node and the store.


@pytest.fixture
def three_nodes(start_redis, start_node, start_proxy):
    """A proxy, the node behind it, and two that reach the store directly. All reckon with three nodes."""
    server = start_redis()
    proxy = start_proxy(server.port)
    store = {"timeout": "200ms", "nodes": 3}
    apart = start_node(server, DAILY, store={**store, "url": proxy.url}, threads=1)
    others = [start_node(server, DAILY, store=store) for _ in range(2)]
    assert [node.decide({"client": "first"})["source"] for node in (apart, *others)] == ["redis"] * 3
    return proxy, apart, others


@pytest.mark.parametrize("lost", [True, False])
def test_case82_a_node_apart_gives_its_share_and_the_others_notice_nothing(three_nodes, lost):
    proxy, apart, others = three_nodes
    proxy.partition()
    with SteadyLoad(others, client="bob", pace_s=0.02) as load:
        assert by_source(apart.decide({"client": "alice"}) for _ in range(150)) == {"fallback": 100}
        assert by_source(others[i % 2].decide({"client": "alice"}) for i in range(80)) == {"redis": 80}
        waits = apart.metric("weir_store_request_duration_seconds_count", op="decide") - 1
        proxy.heal(lost=lost)
        wait_until(lambda: decide_source(apart) == "redis", "it decides with the others again", RECOVERY_S)
    assert {answer.source for answer in load.answers} <= {"redis", "deny_cache"}
    assert load.statuses() == {200}
    assert load.admitted("redis") <= 300
    if lost:
        assert remaining(apart) == remaining(others[0]) == 220
    else:
        # Questions that arrive after their connection was given up are charged, once each.
        assert 220 - waits <= remaining(others[0]) <= 220


def test_answers_that_come_too_late_are_undone_exactly(three_nodes):
    proxy, apart, others = three_nodes
    assert by_source(apart.decide({"client": "alice"}) for _ in range(20)) == {"redis": 20}
    proxy.delay(0.3)  # Beyond the timeout, and soon enough for the connection to be kept.
    late = [apart.decide({"client": "alice"}) for _ in range(6)]
    assert by_source(late) == {"fallback": 6}
    wait_until(lambda: remaining(others[0]) == 280, "what came too late is given back")
    proxy.delay(0)
    wait_until(lambda: decide_source(apart) == "redis", "it decides with the others again", RECOVERY_S)
    assert remaining(apart) == remaining(others[1]) == 280
    assert proxy.accepted == 1  # It was the same connection all the time.


def test_answers_alone_that_are_kept_back_are_undone_when_they_arrive(three_nodes):
    proxy, apart, others = three_nodes
    proxy.partition(REPLIES)
    assert apart.decide({"client": "alice"})["source"] == "fallback"
    assert remaining(others[0]) == 299  # The store has charged what the node has answered otherwise.
    proxy.heal()
    wait_until(lambda: remaining(others[0]) == 300, "the charge is given back")
    assert decide_source(apart) == "redis"


def test_answers_that_never_arrive_leave_one_charge_each_and_one_connection(three_nodes):
    proxy, apart, others = three_nodes
    proxy.partition(REPLIES)
    asked = [apart.decide({"client": "alice"}) for _ in range(50)]
    assert by_source(asked) == {"fallback": 50}
    wait_until(lambda: proxy.connections == 0 or proxy.accepted > 1, "the dead connection is given up")
    assert proxy.connections <= 2  # The one that is being made beside the one that is being ended.
    proxy.heal(lost=True)
    wait_until(lambda: decide_source(apart) == "redis", "it decides with the others again", RECOVERY_S)
    # The breaker lets three calls and then one probe at a time go; nothing is sent a second time.
    assert 300 - 5 <= remaining(others[0]) <= 300 - 3
    assert remaining(apart) == remaining(others[0])


@pytest.mark.parametrize("after", [0, 1, 7, 20])
def test_an_answer_that_is_cut_short_is_charged_once_and_not_asked_again(three_nodes, after):
    proxy, apart, others = three_nodes
    proxy.cut_reply(after)
    cut = apart.decide({"client": "alice"})
    assert (cut["allowed"], cut["source"]) == (True, "fallback")
    assert proxy.cuts == 1
    assert remaining(others[0]) == 299
    wait_until(lambda: decide_source(apart) == "redis", "it decides with the others again", RECOVERY_S)
    assert remaining(apart) == 299


# --- A store that stands still.


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_case80_a_pause_under_load_holds_neither_connections_nor_memory(start_redis, start_node, flavour):
    server = start_redis(flavour)
    nodes = [start_node(server, UNLIMITED_BY_COUNT, store={"timeout": "50ms"}) for _ in range(2)]
    with SteadyLoad(nodes, pace_s=0.005, threads=8) as load:
        wait_until(lambda: load.admitted("redis") >= 400, "some calls have passed")
        before_bytes = [node.rss_bytes() for node in nodes]
        server.pause()
        wait_until(lambda: load.admitted("fallback") >= 2000, "calls pass without a store")
        grown = [node.rss_bytes() - before for node, before in zip(nodes, before_bytes, strict=True)]
        server.signal(signal.SIGCONT)
        thawed_at = time.monotonic()
        wait_until(
            lambda: {answer.node for answer in load.since(thawed_at) if answer.source == "redis"} == {0, 1},
            "the store decides again",
            RECOVERY_S,
        )
        connections = [client for client in server.client.client_list() if client["name"] == "weir"]
    assert load.statuses() == {200}
    assert load.count(allowed=False) == 0
    assert max(grown) < 16 << 20
    assert len(connections) <= 2 * 2 * 2  # For each loop of each node one, and one that takes the place of another.
