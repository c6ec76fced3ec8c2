"""The ways to a store: TLS with certificates and users, unix sockets, a Cluster's slots asked side by side."""

import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis_servers import FLAVOURS, free_port, tls_options
from servers import wait_until

DAILY = [{"name": "daily", "per": ["client"], "rate": "10/day"}]


class TlsStore:
    """A server that wants a certificate and a user, and what reaches it."""

    def __init__(self, start_redis, flavour, certificates):
        self.port = free_port()
        self.server = start_redis(flavour, *tls_options(self.port, certificates))
        self.server.client.execute_command("ACL", "SETUSER", "weir", "on", ">pass/word", "~weir:*", "+@all")
        self.url = f"rediss://weir:pass%2Fword@localhost:{self.port}/0"
        self.tls = {"ca": str(certificates.ca), "cert": str(certificates.cert), "key": str(certificates.key)}

    def users(self):
        return {client["user"] for client in self.server.client.client_list() if client["name"] == "weir"}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_nodes_share_a_limit_over_tls_with_certificates_and_a_user(start_redis, start_node, certificates, flavour):
    store = TlsStore(start_redis, flavour, certificates)
    nodes = [start_node(store.server, DAILY, store={"url": store.url, "tls": store.tls}) for _ in range(2)]
    answers = [nodes[i % 2].decide({"client": "alice"}) for i in range(20)]
    assert sum(answer["allowed"] for answer in answers) == 10
    assert {answer["source"] for answer in answers} <= {"redis", "deny_cache"}
    assert store.users() == {"weir"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ca": "other"}, "self-signed certificate in certificate chain"),
        ({"ca": None}, "self-signed certificate in certificate chain"),
        ({"server_name": "elsewhere.example"}, "hostname mismatch"),
        ({"cert": None, "key": None}, "certificate required|may want a client certificate"),
        ({"cert": "other", "key": "other"}, "unknown ca|may want another client certificate"),
        ({"url": "rediss://weir:wrong@localhost:{port}/0"}, "WRONGPASS"),
        ({"url": "rediss://localhost:{port}/0"}, "NOAUTH"),
    ],
)
def test_a_store_that_cannot_be_trusted_or_does_not_trust_is_named_and_not_used(
    start_redis, start_node, certificates, other_certificates, change, reason
):
    store = TlsStore(start_redis, "redis", certificates)
    store.server.client.config_set("requirepass", "of-the-default-user")
    tls = dict(store.tls)
    for name, value in change.items():
        if name in ("ca", "cert", "key"):
            tls[name] = str(getattr(other_certificates, name)) if value == "other" else value
        elif name == "server_name":
            tls[name] = value
    tls = {name: value for name, value in tls.items() if value is not None}
    url = change.get("url", store.url).format(port=store.port)
    node = start_node(store.server, DAILY, store={"url": url, "tls": tls, "nodes": 5})
    answers = [node.decide({"client": "alice"}) for _ in range(5)]
    assert {answer["source"] for answer in answers} == {"fallback"}
    assert sum(answer["allowed"] for answer in answers) == 2
    notices = [line["notice"] for line in node.log_lines("store")]
    assert any(re.search(reason, notice) for notice in notices), notices
    assert not any("pass/word" in line or "pass%2Fword" in line for line in node.stderr)


@pytest.mark.parametrize("name", ["ca", "cert", "key"])
def test_a_file_of_certificates_that_is_not_there_is_told_before_anything_starts(
    weir_command, tmp_path, certificates, name
):
    tls = {"ca": certificates.ca, "cert": certificates.cert, "key": certificates.key, name: tmp_path / "missing.pem"}
    files = ", ".join(f"{file}: {path}" for file, path in tls.items())
    config = tmp_path / "weir.yaml"
    config.write_text(
        "identity: {secret: tests-share-this-secret}\n"
        "listen: {api: 127.0.0.1:0}\n"
        f"store: {{kind: redis, url: rediss://localhost:1/0, tls: {{{files}}}}}\n"
        "limits: [{name: a, per: [client], rate: 1/s}]\n"
    )
    for command in (["validate", config], ["serve", "--config", config]):
        ended = weir_command(*command)
        assert ended.returncode != 0, ended.stdout
        assert "store.tls" in ended.stderr + ended.stdout
        assert "missing.pem" in ended.stderr + ended.stdout


@pytest.mark.parametrize(
    ("settings", "asked_for"),
    [({"server_name": "localhost"}, ["localhost"]), ({}, ["localhost"])],
)
def test_the_name_that_is_verified_is_the_name_that_is_asked_for(
    start_redis, start_node, start_proxy, certificates, settings, asked_for
):
    proxy = start_proxy(start_redis().port, certificates)
    host = "127.0.0.1" if settings else "localhost"
    url = f"rediss://{host}:{proxy.port}/0"
    tls = {"ca": str(certificates.ca), **settings}
    node = start_node(proxy, DAILY, store={"url": url, "tls": tls, "connections": 1}, threads=1)
    assert node.decide({"client": "alice"})["source"] == "redis"
    assert proxy.names == asked_for


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_nodes_share_a_limit_over_a_unix_socket(start_redis, start_node, flavour):
    server = start_redis(flavour)
    by_socket = start_node(server, DAILY, store={"url": f"unix://{server.socket}"})
    by_port = start_node(server, DAILY)
    answers = [(by_socket, by_port)[i % 2].decide({"client": "alice"}) for i in range(20)]
    assert sum(answer["allowed"] for answer in answers) == 10
    assert {answer["source"] for answer in answers} <= {"redis", "deny_cache"}


# --- How a decision's round trips are counted: by the calls that each server of a Cluster carries out.

LAYERS = [
    {"name": "address", "per": ["ip"], "rate": "1000/day"},
    {"name": "client", "per": ["client"], "rate": "5/day"},
    {"name": "endpoint", "per": ["path"], "rate": "1000/day"},
]


def one_key_on_each_server(cluster, node):
    """Attributes of a call whose three counters live on three servers."""
    for number in range(200):
        call = {"ip": f"192.0.2.{number}", "client": f"client-{number}", "path": f"/{number}"}
        before = [len(server.keys()) for server in cluster.servers]
        assert node.decide(call)["allowed"]
        after = [len(server.keys()) for server in cluster.servers]
        if [new - old for new, old in zip(after, before, strict=True)] == [1, 1, 1]:
            return call
    raise AssertionError("no call with a counter on each of the servers")


def test_three_layers_in_a_cluster_take_one_round_trip_and_a_denial_one_more(redis_cluster, start_node):
    # Nodes are named, so that there are no heartbeats among the calls that are counted.
    node = start_node(redis_cluster, LAYERS, store={"timeout": "10s", "nodes": 1}, threads=1)
    call = one_key_on_each_server(redis_cluster, node)
    servers = redis_cluster.servers

    def calls(which=servers):
        return [server.calls("evalsha") for server in which]

    def left():
        return {limit["name"]: limit["remaining"] for limit in node.decide(call, 0)["limits"]}

    # The first trip: whichever server does not answer, the two others have been asked meanwhile.
    with ThreadPoolExecutor(1) as threads:
        for silent in servers:
            others = [server for server in servers if server is not silent]
            before, before_silent = calls(others), silent.calls("evalsha")
            silent.pause()
            try:
                asked = threads.submit(node.decide, call)
                wait_until(
                    lambda others=others, before=before: calls(others) == [count + 1 for count in before],
                    "both others are asked while one is silent",
                )
                assert not asked.done()
            finally:
                silent.signal(signal.SIGCONT)
            answer = asked.result()
            assert (answer["allowed"], answer["source"]) == (True, "redis")
            assert calls(others) == [count + 1 for count in before]
            assert silent.calls("evalsha") == before_silent + 1
    assert left() == {"address": 996, "client": 1, "endpoint": 996}

    # A denial: the same trip, and a second one to the two that have charged. (Of a cost that no denial is known of.)
    node.decide(call, 2)  # Both scripts are known to all servers.
    wait_until(lambda: left() == {"address": 996, "client": 1, "endpoint": 996}, "it is given back")
    before = sum(calls())
    denied = node.decide(call, 3)
    assert (denied["allowed"], denied["denied_by"]) == (False, ["client"])
    wait_until(lambda: sum(calls()) >= before + 5, "the second trip")
    assert left() == {"address": 996, "client": 1, "endpoint": 996}
    assert sum(calls()) == before + 5 + 3  # Three of them are the reading of what is left.
