"""What answers over a shared store say, and what does not come back from it."""

import concurrent.futures
import signal
from pathlib import Path

import httpx
import pytest
from servers import http, wait_until


def denied_twice(node, attributes, cost):
    """A denial of the store, and what the node remembers of it."""
    first = node.decide(attributes, cost)
    again = node.decide(attributes, cost)
    assert (first["source"], again["source"]) == ("redis", "deny_cache")
    return first, again


@pytest.mark.parametrize("algorithm", ["token_bucket", "sliding_window", "sliding_counter", "fixed_window"])
def test_a_remembered_denial_tells_what_the_store_told(start_node, shared_store, algorithm):
    limit = {"name": "a", "per": ["client"], "rate": "10/h", "algorithm": algorithm}
    node = start_node(shared_store, [limit], threads=1)
    node.decide({"client": "x"}, 7)
    first, again = denied_twice(node, {"client": "x"}, 5)
    told, remembered = first["limits"][0], again["limits"][0]
    assert told["remaining"] == 3
    assert remembered["remaining"] == told["remaining"]
    assert abs(remembered["reset_after_ms"] - told["reset_after_ms"]) < 1000


@pytest.mark.parametrize("consistency", ["exact", "leased"])
def test_decisions_that_wait_for_the_store_are_answered_before_the_end(start_node, shared_store, consistency):
    """`timeouts.drain` is for calls in flight to finish; these need `store.timeout`."""
    limit = {"name": "a", "per": ["client"], "rate": "10/h", "consistency": consistency}
    timeouts = {"drain_delay": "0s", "drain": "20s"}
    node = start_node(shared_store, [limit], store={"timeout": "2s"}, timeouts=timeouts)
    url, body = f"{node.api}/v1/check", {"attributes": {"client": "x"}}
    with httpx.Client(timeout=20) as client, concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert client.post(url, json=body).status_code == 200
        shared_store.pause()
        try:
            waiting = pool.submit(client.post, url, json=body)
            wait_until(
                lambda: not waiting.done() and bytes_in_flight(shared_store.port), "the call waits for the store"
            )
            assert node.stop() == 0
            assert waiting.result(20).json()["source"] == "fallback"
        finally:
            shared_store.signal(signal.SIGCONT)


def bytes_in_flight(port):
    """Whether a socket of the server that listens at that port holds bytes that it has not read."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(f":{port:04X}") and fields[3] == "01" and int(fields[4].split(":")[1], 16) > 0:
            return True
    return False


def refuse_scripts(server):
    server.client.execute_command("ACL", "SETUSER", "default", "-@scripting")


def refuse_writes(server):
    server.client.replicaof("127.0.0.1", 1)


def run_out_of_memory(server):
    server.client.config_set("maxmemory", "1mb")


@pytest.mark.parametrize("refuse", [refuse_scripts, refuse_writes, run_out_of_memory])
def test_the_log_says_why_the_store_refuses(start_node, shared_store, refuse):
    node = start_node(shared_store, [{"name": "a", "per": ["client"], "rate": "100/h"}])
    refuse(shared_store)
    wait_until(lambda: node.decide({"client": "x"}, 1)["source"] == "fallback", "the failure policy answers")
    wait_until(lambda: node.log_lines("store"), "a line of the log about the store", timeout_s=5)


def test_the_log_says_that_the_server_is_a_cluster(start_node, redis_cluster):
    server = redis_cluster.servers[0]  # Its URL begins with redis://.
    node = start_node(server, [{"name": "a", "per": ["client"], "rate": "100/h"}])
    answers = [node.decide({"client": f"x{i}"}, 1)["source"] for i in range(10)]
    assert "fallback" in answers
    lines = wait_until(lambda: node.log_lines("store"), "a line of the log about the store", timeout_s=5)
    assert any("redis+cluster://" in line["notice"] for line in lines), lines


CONFIG = """listen: {{api: 127.0.0.1:0}}
identity: {{secret: 0123456789abcdef0123456789abcdef}}
store: {store}
limits: [{{name: a, per: [client], rate: 10/min}}]
"""


def fault_of(weir_command, tmp_path, store):
    path = tmp_path / "weir.yaml"
    path.write_text(CONFIG.format(store=store))
    result = weir_command("validate", path)
    assert result.returncode == 1, result.stdout
    return result.stderr.removeprefix(str(path))


def test_a_url_without_a_kind_is_refused(weir_command, tmp_path):
    """Else every node counts alone, and nothing says so."""
    fault = fault_of(weir_command, tmp_path, '{url: "redis://h"}')
    assert "kind" in fault, fault


def reset(server, node):
    answer = http.post(f"{node.admin}/admin/reset", json={"limit": "a", "attributes": {"client": "x"}})
    assert answer.status_code == 200


def lose_data(server, node):
    server.client.flushall()


@pytest.mark.parametrize("consistency", ["exact", "leased"])
@pytest.mark.parametrize("algorithm", ["token_bucket", "fixed_window"])
@pytest.mark.parametrize("forget", [reset, lose_data])
def test_what_a_forgotten_counter_was_charged_does_not_come_back_to_the_new_one(
    start_node, shared_store, forget, algorithm, consistency
):
    limit = {"name": "a", "per": ["client"], "rate": "100/30d", "algorithm": algorithm, "consistency": consistency}
    node = start_node(shared_store, [limit], threads=1)
    held = node.decide({"client": "x"}, 50, reserve=True)["reservation"]
    forget(shared_store, node)
    assert node.decide({"client": "x"}, 60)["allowed"]
    assert http.post(f"{node.api}/v1/release", json={"reservation": held}).status_code == 200
    left = node.decide({"client": "x"}, 0, peek=True)["limits"][0]["remaining"]
    assert left == 40


def test_a_limit_of_nothing_promises_nothing_while_the_store_is_away(start_node, shared_store):
    node = start_node(shared_store, [{"name": "none", "per": [], "rate": "0/min", "on_failure": "open"}], threads=1)
    assert node.decide({"client": "x"}, 1)["retry_after_ms"] is None
    shared_store.kill()

    def fallback():
        answer = node.decide({"client": "x"}, 1)
        return answer if answer["source"] == "fallback" else None

    assert wait_until(fallback, "the failure policy answers")["retry_after_ms"] is None
