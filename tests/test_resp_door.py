"""The resp door: real clients of Redis on it, and what only a whole server shows."""

import json
import re
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from servers import ROOT, wait_until

import redis

TESTS = Path(__file__).parent
INSTALL = "scripts/install_packages.sh test installs it"
PASSWORD = "the-password-of-the-door"
LIMITS = [{"name": "calls", "per": ["client"], "rate": "10/hour"}]
TEN_A_DAY = ["9", "10", "86400"]


@pytest.fixture
def weir(start_weir):
    return start_weir(LIMITS, listen={"resp": "127.0.0.1:0"})


@pytest.fixture(params=["memory", "redis", "valkey"])
def any_store(request, start_weir, start_node, start_redis):
    """A server on each kind of store."""
    listen = {"resp": "127.0.0.1:0"}
    if request.param == "memory":
        return start_weir(LIMITS, listen=listen)
    return start_node(start_redis(request.param), LIMITS, listen=listen)


def connect(weir, **options):
    return redis.Redis(port=weir.address("resp")[1], socket_timeout=20, **options)


def run(*arguments, **options):
    done = subprocess.run(
        [str(argument) for argument in arguments], capture_output=True, text=True, timeout=110, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def redis_cli(weir, *words, options=()):
    assert shutil.which("redis-cli"), f"redis-cli is missing: {INSTALL}"
    return run("redis-cli", "-p", weir.address("resp")[1], *options, *words)


class TestRedisPy:
    @pytest.mark.parametrize("protocol", [2, 3])
    def test_commands_and_pipelines(self, any_store, protocol):
        client = connect(any_store, protocol=protocol, client_name="tests")
        assert client.ping()
        assert client.client_getname() in ("tests", b"tests")
        assert client.client_info()["resp"] == str(protocol)
        assert client.execute_command("CL.THROTTLE", "u", 15, 30, 60) == [0, 16, 15, -1, 2]
        with client.pipeline(transaction=False) as pipeline:
            for _ in range(5):
                pipeline.execute_command("CL.THROTTLE", "k", 2, 1, 3600)
            pipeline.ping()
            pipeline.execute_command("WEIR.CHECK", "client", "a")
            *throttled, pong, checked = pipeline.execute()
        assert [reply[0] for reply in throttled] == [0, 0, 0, 1, 1]
        assert pong
        assert json.loads(checked)["limits"][0]["remaining"] == 9

    def test_what_a_program_asks_of_a_server(self, weir):
        client = connect(weir)
        assert client.info()["loading"] == 0
        assert client.echo("x") == b"x"
        assert client.command_count() == len(client.command()) == 15
        assert client.config_get("save") == {"save": ""}
        assert client.client_list()[0]["id"] == str(client.client_id())
        with pytest.raises(redis.ResponseError, match="unknown command 'GET'"):
            client.get("k")


def test_redis_cli(weir):
    assert redis_cli(weir, "CL.THROTTLE", "u", "15", "30", "60") == "0\n16\n15\n-1\n2\n"
    assert redis_cli(weir, "HELLO", "3", options=["-3"]).startswith("server weir\n")
    assert json.loads(redis_cli(weir, "WEIR.CHECK", "client", "cli"))["allowed"] is True
    # Its interactive form asks for COMMAND DOCS first.
    port = weir.address("resp")[1]
    typed = run("redis-cli", "-p", port, input="PING\nSELECT 0\nCL.THROTTLE u\nQUIT\n")
    assert typed.split("\n")[:3] == ["PONG", "OK", "ERR wrong number of arguments for 'cl.throttle' command"]


def test_redis_benchmark(weir):
    assert shutil.which("redis-benchmark"), f"redis-benchmark is missing: {INSTALL}"
    options = ["-p", weir.address("resp")[1], "-n", "20000", "-c", "20", "-P", "16", "-q"]
    out = run("redis-benchmark", *options, "-r", "100", "CL.THROTTLE", "key:__rand_int__", "15", "30", "60")
    assert "requests per second" in out and "rror" not in out
    assert weir.metric("weir_decisions_total", door="resp") == 20000
    out = run("redis-benchmark", *options, "-t", "ping")
    assert out.count("requests per second") == 2 and "rror" not in out


class TestOtherLanguages:
    @staticmethod
    def ioredis(weir, *password):
        assert (TESTS / "node/node_modules/ioredis").exists(), f"ioredis is missing: {INSTALL}"
        return run("node", TESTS / "node/redis_client.mjs", weir.address("resp")[1], *password)

    @staticmethod
    def go_redis(weir, tmp_path, protocol, *password):
        assert shutil.which("go"), f"go is missing: {INSTALL}"
        run("go", "build", "-o", tmp_path / "client", ".", cwd=TESTS / "go")
        return run(tmp_path / "client", weir.addresses["resp"], protocol, *password)

    @staticmethod
    def expect(printed, name):
        seen = json.loads(printed)
        assert seen["ping"] == "PONG"
        assert seen["name"] == f"weir-{name}"
        assert seen["throttle"] == [0, 16, 15, -1, 2]
        assert json.loads(seen["check"])["limits"][0]["remaining"] == 8
        assert seen["pipeline"] == [0, 0, 0, 1, 1]
        assert seen["error"] == "ERR count: must be a whole number from 1 to 9007199254740992"

    def test_ioredis(self, weir):
        self.expect(self.ioredis(weir), "node")

    @pytest.mark.parametrize("protocol", ["2", "3"])
    def test_go_redis(self, weir, tmp_path, protocol):
        self.expect(self.go_redis(weir, tmp_path, protocol), "go")

    def test_with_a_password(self, start_weir, tmp_path):
        weir = start_weir(LIMITS, listen={"resp": {"address": "127.0.0.1:0", "token": PASSWORD}})
        self.expect(self.ioredis(weir, PASSWORD), "node")
        self.expect(self.go_redis(weir, tmp_path, "3", PASSWORD), "go")


class TestWhoMayComeIn:
    def test_the_password(self, start_weir):
        weir = start_weir(LIMITS, listen={"resp": {"address": "127.0.0.1:0", "token": PASSWORD}})
        for protocol in (2, 3):
            assert connect(weir, protocol=protocol, password=PASSWORD).ping()
            assert connect(weir, protocol=protocol, username="default", password=PASSWORD).ping()
            with pytest.raises(redis.AuthenticationError):
                connect(weir, protocol=protocol, password="wrong").ping()
        with pytest.raises(redis.AuthenticationError, match="Authentication required"):
            connect(weir, protocol=2).execute_command("CL.THROTTLE", "k", 0, 1, 1)
        assert redis_cli(weir, "PING", options=["--no-auth-warning", "-a", PASSWORD]) == "PONG\n"
        assert PASSWORD not in weir.report()

    def test_tls(self, start_weir, certificates):
        tls = {"cert": str(certificates.cert), "key": str(certificates.key)}
        weir = start_weir(LIMITS, listen={"resp": {"address": "127.0.0.1:0", "tls": tls, "token": PASSWORD}})
        client = connect(weir, ssl=True, ssl_ca_certs=str(certificates.ca), password=PASSWORD)
        assert client.execute_command("CL.THROTTLE", "u", 15, 30, 60) == [0, 16, 15, -1, 2]
        options = ["--tls", "--cacert", certificates.ca, "--no-auth-warning", "-a", PASSWORD]
        assert redis_cli(weir, "PING", options=options) == "PONG\n"

    def test_a_certificate_in_place_of_a_password(self, start_weir, certificates):
        ca, cert, key = str(certificates.ca), str(certificates.cert), str(certificates.key)
        tls = {"cert": cert, "key": key, "client_ca": ca}
        weir = start_weir(LIMITS, listen={"resp": {"address": "0.0.0.0:0", "tls": tls}})
        with pytest.raises(redis.ConnectionError):
            connect(weir, ssl=True, ssl_ca_certs=ca).ping()
        assert connect(weir, ssl=True, ssl_ca_certs=ca, ssl_certfile=cert, ssl_keyfile=key).ping()

    def test_a_door_beyond_loopback_needs_a_token(self, weir_command, tmp_path):
        config = tmp_path / "weir.yaml"
        config.write_text("listen: {resp: 0.0.0.0:6380}\n")
        refused = weir_command("validate", config)
        assert refused.returncode == 1
        assert "listen.resp: `0.0.0.0:6380` can be reached from other hosts, so it needs a `token`" in refused.stderr

    def test_a_unix_socket(self, start_weir, tmp_path):
        path = tmp_path / "weir.sock"
        start_weir(LIMITS, listen={"resp": f"unix:{path}"})
        client = redis.Redis(unix_socket_path=str(path), socket_timeout=20)
        assert client.execute_command("CL.THROTTLE", "u", 15, 30, 60) == [0, 16, 15, -1, 2]


def test_both_doors_share_one_namespace_of_rules(any_store):
    client = connect(any_store)
    assert client.execute_command("CL.THROTTLE", "user:42", *TEN_A_DAY, 4)[2] == 6
    rule = {"rate": "10/day", "burst": 10}
    assert any_store.decide(key="user:42", rule=rule, cost=5)["limits"][0]["remaining"] == 1
    assert client.execute_command("CL.THROTTLE", "user:42", *TEN_A_DAY, 2)[:3] == [1, 10, 1]


def test_both_doors_give_the_same_answers(any_store):
    client = connect(any_store)
    by_command = json.loads(client.execute_command("WEIR.CHECK", "client", "a", "COST", "requests", 3))
    by_http = any_store.decide({"client": "b"}, {"requests": 3})
    for answer in (by_command, by_http):
        assert answer["limits"][0].pop("reset_after_ms") in range(1_079_000, 1_080_001)
    assert by_command == by_http


def test_a_release_gives_back_before_the_next_command_of_its_pipeline(any_store):
    client = connect(any_store)
    held = json.loads(client.execute_command("WEIR.CHECK", "client", "a", "COST", "requests", 10, "RESERVE"))
    with client.pipeline(transaction=False) as pipeline:
        pipeline.execute_command("WEIR.CHECK", "client", "a")
        pipeline.execute_command("WEIR.RELEASE", held["reservation"])
        pipeline.execute_command("WEIR.CHECK", "client", "a", "COST", "requests", 10)
        refused, released, passed = map(json.loads, pipeline.execute())
    assert refused["allowed"] is False
    assert released == {"reservation": held["reservation"], "charged": {"requests": 0}}
    assert passed["allowed"] is True
    with pytest.raises(redis.ResponseError, match="NOT_FOUND reservation: unknown or expired"):
        client.execute_command("WEIR.RELEASE", "nothing")


def test_decisions_of_one_read_go_to_the_store_together(start_node, shared_store):
    weir = start_node(shared_store, [], listen={"resp": "127.0.0.1:0"}, threads=1)
    client = connect(weir)
    client.execute_command("CL.THROTTLE", "warm", *TEN_A_DAY)
    before = shared_store.decision_calls()
    with client.pipeline(transaction=False) as pipeline:
        for _ in range(200):
            pipeline.execute_command("CL.THROTTLE", "k", "99", "100", "86400")
        replies = pipeline.execute()
    assert [reply[0] for reply in replies] == [0] * 100 + [1] * 100
    assert [reply[2] for reply in replies] == [*range(99, -1, -1), *[0] * 100]
    assert shared_store.decision_calls() - before <= 20


def test_case10_and_75_keys_in_the_store_expire(start_node, shared_store):
    client = connect(start_node(shared_store, [], listen={"resp": "127.0.0.1:0"}))
    remaining = [client.execute_command("CL.THROTTLE", "u", 1000, 1000, 60)[2] for _ in range(3)]
    assert remaining == [1000, 999, 998]
    client.execute_command("CL.THROTTLE", "k", 0, 1, 10)
    lifetimes = [shared_store.client.pttl(key) for key in shared_store.keys() if not key.endswith(b":nodes")]
    assert len(lifetimes) == 2
    assert all(0 < lifetime <= 12_000 for lifetime in lifetimes)
    assert max(lifetimes) > 9_000  # The bucket of one in ten seconds is there until it is full.


def test_case18_a_look_stores_nothing(start_node, shared_store):
    client = connect(start_node(shared_store, [], listen={"resp": "127.0.0.1:0"}))
    for _ in range(5):
        assert client.execute_command("CL.THROTTLE", "k", 2, 3, 60, 0) == [0, 3, 3, -1, 0]
    assert [key for key in shared_store.keys() if not key.endswith(b":nodes")] == []


def test_case75_a_bucket_is_kept_until_it_is_full(start_weir, fake_clock):
    client = connect(start_weir([], listen={"resp": "127.0.0.1:0"}, env=fake_clock.env))
    allowed = 0
    for _ in range(41):
        allowed += client.execute_command("CL.THROTTLE", "k", 0, 1, 10)[0] == 0
        fake_clock.advance(1.5)
    assert allowed == 6


def test_a_stranger_is_told_and_closed(weir):
    with socket.create_connection(weir.address("resp"), timeout=20) as stranger:
        stranger.sendall(b"*1\r\n$99999999\r\n")
        assert stranger.makefile("rb").read() == b"-ERR Protocol error: invalid bulk length\r\n"


def test_metrics_of_the_door(weir):
    client = connect(weir)
    client.execute_command("WEIR.CHECK", "client", "a", "COST", "requests", 11)
    client.execute_command("CL.THROTTLE", "k", 0, 1, 1)
    assert weir.metric("weir_decisions_total", door="resp", outcome="denied") == 1
    assert weir.metric("weir_decisions_total", door="resp", outcome="allowed") == 1
    assert weir.metric("weir_connections", door="resp") == 1
    client.close()
    wait_until(lambda: weir.metric("weir_connections", door="resp") == 0, "the connection has gone")


def test_case84f_sigterm_cuts_no_reply_short(start_weir):
    """Clients in a loop: each command of theirs is answered whole, or its connection ends with nothing of a reply."""
    weir = start_weir([], listen={"resp": "127.0.0.1:0"}, timeouts={"drain_delay": "300ms", "drain": "2s"})
    command = b"CL.THROTTLE k 1000000 1000000 60\r\n" * 8
    counts, cut = [0] * 4, []

    def call(number):
        with socket.create_connection(weir.address("resp"), timeout=20) as connection:
            replies = connection.makefile("rb")
            while True:
                try:
                    connection.sendall(command)
                    lines = [replies.readline() for _ in range(8 * 6)]
                except OSError:
                    return
                if b"" in lines or not lines[-1].endswith(b"\n"):
                    cut.append([line for line in lines if line])
                    return
                counts[number] += 8

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    wait_until(lambda: min(counts) > 100, "the load has begun")
    at_signal = list(counts)
    weir.signal(signal.SIGTERM)
    assert weir.wait() == 0
    for thread in threads:
        thread.join()
    assert [lines for lines in cut if lines] == []
    assert all(after > before for before, after in zip(at_signal, counts, strict=True))
    assert not re.search(r"panic|abort", weir.report())


def test_the_documentation_begins_with_what_works(start_weir):
    page = (ROOT / "docs" / "resp.md").read_text()
    configuration, console = re.match(r".*?```yaml\n(.*?)```.*?```console\n(.*?)```", page, re.S).groups()
    assert "resp: 127.0.0.1:6380" in configuration
    weir = start_weir(text=configuration.replace(":6380", ":0"))
    asked = re.findall(r"^\$ redis-cli -p 6380 (.*)\n((?:[^$].*\n)*)", console, re.M)
    assert len(asked) == 2
    for words, shown in asked:
        assert redis_cli(weir, *words.split(), options=["--no-raw"]) == shown
