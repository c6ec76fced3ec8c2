"""Envoy's rate limit service over gRPC, asked by grpcio and grpc-js."""

import json
import re
import subprocess

import grpc
import pytest
from rls_client import OK, OVER, RlsClient, descriptor, headers, rls
from servers import PATIENCE_S, ROOT, wait_until

USER = [{"key": "user"}]
THREE = {"name": "three", "domain": "d", "descriptor": USER, "rate": "3/min", "algorithm": "fixed_window"}
UNLIMITED_REMAINING = 4294967295


def user(name="a", **options):
    return descriptor(("user", name), **options)


@pytest.fixture
def ask(start_weir):
    """ask(limits, **sections) -> a client of a Weir of its own, which is `client.weir`"""
    clients = []

    def start(limits, **sections):
        listen = {"gateway": None, "grpc": "127.0.0.1:0", **sections.pop("listen", {})}
        weir = start_weir(limits, listen=listen, **sections)
        client = RlsClient(weir.addresses["grpc"])
        client.weir = weir
        clients.append(client)
        return client

    yield start
    for client in clients:
        client.close()


def test_case18_an_unset_addend_is_one(ask):
    client = ask([THREE])
    assert [client.codes("d", user())[0] for _ in range(4)] == [OK, OK, OK, OVER]


def test_statuses_say_where_each_descriptor_stands(ask):
    client = ask([THREE, {"name": "free", "domain": "d", "descriptor": [{"key": "open"}], "rate": "unlimited"}])
    answer = client.ask("d", descriptor(("open", "x")), user(), descriptor(("unknown", "x")))
    assert answer.overall_code == OK
    unlimited, limited, unmatched = answer.statuses
    assert unlimited.code == OK
    assert unlimited.limit_remaining == UNLIMITED_REMAINING
    assert not unlimited.HasField("current_limit")
    assert (limited.code, limited.limit_remaining) == (OK, 2)
    current = limited.current_limit
    assert (current.requests_per_unit, current.unit, current.name) == (3, rls.MINUTE, "three")
    assert 0 < limited.duration_until_reset.seconds + limited.duration_until_reset.nanos / 1e9 <= 60
    assert unmatched.code == OK
    assert not unmatched.HasField("current_limit")


def test_a_descriptor_over_its_limit_charges_no_other(ask):
    client = ask([THREE, {**THREE, "name": "one", "descriptor": [{"key": "path"}], "rate": "1/min"}])
    path = descriptor(("path", "/p"))
    assert client.codes("d", user(), path) == (OK, [OK, OK])
    for _ in range(5):
        assert client.codes("d", user(), path) == (OVER, [OK, OVER])
    assert [client.codes("d", user())[0] for _ in range(3)] == [OK, OK, OVER]


def test_each_descriptor_may_have_an_addend_of_its_own(ask):
    client = ask([{**THREE, "rate": "10/min"}])
    answer = client.ask("d", user("a", hits=4), user("b"), user("c", hits=0), hits=2)
    assert [status.limit_remaining for status in answer.statuses] == [6, 8, 10]
    answer = client.ask("d", user("a", hits=7), user("b", hits=0))
    assert answer.overall_code == OVER
    assert [status.limit_remaining for status in answer.statuses] == [6, 8]
    for _ in range(3):
        assert client.ask("d", user("a", hits=0)).statuses[0].limit_remaining == 6


def test_case16_negative_hits_are_refused(ask):
    client = ask([{**THREE, "rate": "10/min"}])
    assert client.codes("d", user(hits=3))[0] == OK
    code, details = client.refusal("d", user(hits=5, negative=True))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith("descriptors[0].is_negative_hits: ")
    assert client.ask("d", user()).statuses[0].limit_remaining == 6


@pytest.mark.parametrize("hits", [2**53 + 1, 2**64 - 1])
def test_hits_out_of_range_are_refused(ask, hits):
    client = ask([THREE])
    code, details = client.refusal("d", user(hits=hits))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert details == "descriptors[0].hits_addend: must be at most 9007199254740992"


def test_case27_a_limit_beyond_32_bits_is_exact_in_the_header(ask):
    most = {**THREE, "rate": "4294967295/month"}
    beyond = {**THREE, "name": "beyond", "descriptor": [{"key": "big"}], "rate": "30000000000/month"}
    client = ask([most, beyond])
    status = client.ask("d", user()).statuses[0]
    assert status.current_limit.requests_per_unit == 4294967295
    assert status.current_limit.unit == rls.MONTH
    assert status.limit_remaining == 4294967294
    answer = client.ask("d", descriptor(("big", "x")))
    assert headers(answer)["ratelimit-policy"] == '"beyond";q=30000000000;w=2592000'
    assert headers(answer)["ratelimit"].startswith('"beyond";r=29999999999;t=')
    assert not answer.statuses[0].HasField("current_limit")  # Which could not say it.
    assert answer.statuses[0].limit_remaining == 4294967295


def test_case40_empty_calls_and_unknown_domains_break_nothing(ask):
    client = ask([THREE])
    for _ in range(1000):
        code, details = client.refusal("d")
        assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "descriptors" in details
    code, details = client.refusal("", user())
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "domain" in details
    assert client.codes("elsewhere", user()) == (OK, [OK])
    # What has no limit of its own does not keep the others from counting.
    assert [client.codes("d", descriptor(("absent", "")), user())[0] for _ in range(4)] == [OK, OK, OK, OVER]


def test_case41_a_higher_limit_of_the_request_holds_at_once(ask):
    client = ask([])
    two, hundred = (2, rls.MINUTE), (100, rls.MINUTE)
    assert [client.codes("d", user(own_rate=two))[0] for _ in range(3)] == [OK, OK, OVER]
    status = client.ask("d", user(own_rate=hundred)).statuses[0]
    assert status.code == OK
    assert status.current_limit.requests_per_unit == 100


def test_a_rate_of_the_request_takes_the_place_of_the_policys(ask):
    client = ask([THREE])
    status = client.ask("d", user(own_rate=(10, rls.HOUR))).statuses[0]
    assert (status.current_limit.requests_per_unit, status.current_limit.unit) == (10, rls.HOUR)
    code, details = client.refusal("d", user(own_rate=(10, 0)))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert details == "descriptors[0].limit.unit: must be SECOND to WEEK (1 to 7)"


def test_case54_a_refusal_tells_the_wait_of_the_limit_that_refuses(ask):
    year = {**THREE, "name": "year", "rate": "100000/year"}
    client = ask([{**THREE, "rate": "5/min"}, year])
    answers = [client.ask("d", user()) for _ in range(6)]
    assert [answer.overall_code for answer in answers] == [OK] * 5 + [OVER]
    assert 1 <= int(headers(answers[-1])["retry-after"]) <= 60
    assert answers[-1].statuses[0].duration_until_reset.seconds <= 60


def test_case59_health_checks_are_never_limited(ask):
    client = ask([{**THREE, "rate": "0/min"}])
    assert client.codes("d", user())[0] == OVER
    before = client.weir.metric("weir_decisions_total", door="grpc")
    assert all(client.healthy() for _ in range(100))
    assert client.healthy("envoy.service.ratelimit.v3.RateLimitService")
    assert client.weir.metric("weir_decisions_total", door="grpc") == before
    with pytest.raises(grpc.RpcError) as unknown:
        client.healthy("another.Service")
    assert unknown.value.code() == grpc.StatusCode.NOT_FOUND


def test_case60_over_the_limit_is_no_error(ask):
    client = ask([{**THREE, "rate": "0/min"}])
    call = client.start("d", user())
    assert call.result().overall_code == OVER
    assert call.code() == grpc.StatusCode.OK


def test_case70_no_two_keys_share_a_counter(ask):
    two = {**THREE, "descriptor": [{"key": "k1"}, {"key": "k2"}], "rate": "1/min"}
    client = ask([two, {**THREE, "name": "user", "rate": "1/min"}])
    pairs = [("ab", "c"), ("a", "bc"), ("a|b", "c"), ("a", "b|c"), ("a:b", "c"), ("a", "b:c"), ("a_b", ""), ("a", "b")]
    calls = [descriptor(("k1", first), ("k2", second)) for first, second in pairs] + [user("x}{y")]
    assert [client.codes("d", call)[0] for call in calls] == [OK] * len(calls)
    assert [client.codes("d", call)[0] for call in calls] == [OVER] * len(calls)


def test_the_headers_of_an_answer_are_those_of_every_door(ask):
    client = ask([{**THREE, "algorithm": "token_bucket"}])
    allowed = headers(client.ask("d", user()))
    assert allowed["ratelimit-policy"] == '"three";q=3;w=60'
    assert allowed["ratelimit"] == '"three";r=2;t=20'
    assert not any(name.startswith("x-ratelimit-") for name in allowed)  # Envoy's own.
    assert "retry-after" not in allowed
    answer = client.ask("d", user(hits=3))
    refused = headers(answer)
    assert refused["retry-after"] == "20"
    assert re.fullmatch(r"\d+", refused["retry-after-ms"])
    assert refused["content-type"] == "application/problem+json"
    body = json.loads(answer.raw_body)
    assert (body["status"], body["limit"], body["retry_after_seconds"]) == (429, "three", 20)
    metadata = dict(answer.dynamic_metadata.items())
    assert metadata["limit"] == "three"
    assert metadata["source"] == "memory"
    assert 0 < metadata["retry_after_ms"] <= 20_000
    assert client.weir.metric("weir_decisions_total", door="grpc", outcome="denied") == 1


def test_shadow_limits_are_counted_and_refuse_nothing(ask):
    client = ask([{**THREE, "enforce": "shadow"}])
    assert [client.codes("d", user())[0] for _ in range(5)] == [OK] * 5
    assert client.weir.metric("weir_limit_decisions_total", limit="three", outcome="shadow_denied") == 2


def test_what_is_not_offered_is_refused_in_words(ask):
    client = ask([THREE])
    code, details = client.refusal("d", user(), compression=grpc.Compression.Gzip)
    assert code == grpc.StatusCode.UNIMPLEMENTED
    assert "identity" in details
    unknown = client.channel.unary_unary("/envoy.service.ratelimit.v3.RateLimitService/Other")
    with pytest.raises(grpc.RpcError) as refused:
        unknown(b"", timeout=PATIENCE_S)
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "ShouldRateLimit" in refused.value.details()
    broken = client.channel.unary_unary("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit")
    with pytest.raises(grpc.RpcError) as refused:
        broken(b"\xff\xff", timeout=PATIENCE_S)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(grpc.RpcError) as refused:
        broken(b"\0" * 300_000, timeout=PATIENCE_S)
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert client.codes("d", user())[0] == OK


def test_many_calls_at_once_admit_exactly_the_limit(ask):
    client = ask([{**THREE, "rate": "500/hour"}])
    calls = [client.start("d", user()) for _ in range(2000)]
    codes = [call.result().overall_code for call in calls]
    assert (codes.count(OK), codes.count(OVER)) == (500, 1500)


def test_grpc_js_asks_too(ask):
    client = ask([THREE])
    run = subprocess.run(
        ["node", ROOT / "tests" / "node" / "rls_client.mjs", client.weir.addresses["grpc"]],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert said["codes"] == ["OK", "OK", "OK", "OVER_LIMIT"]
    assert said["first"]["statuses"][0]["limitRemaining"] == 2
    assert said["health"] == "SERVING"


def test_a_shared_store_answers_the_same(ask, shared_store):
    store = {"kind": "redis", "url": shared_store.url, "timeout": "500ms"}
    client = ask([THREE], store=store, identity={"secret": "tests-share-this-secret"})
    other = ask([THREE], store=store, identity={"secret": "tests-share-this-secret"})
    calls = [each.start("d", user()) for each in [client, other] * 50]
    codes = [call.result().overall_code for call in calls]
    assert (codes.count(OK), codes.count(OVER)) == (3, 97)
    status = client.ask("d", user("b", hits=2)).statuses[0]
    assert (status.limit_remaining, status.current_limit.name) == (1, "three")


def test_case80_a_paused_store_delays_no_call(ask, shared_store):
    store = {"kind": "redis", "url": shared_store.url, "timeout": "50ms", "on_failure": "open"}
    client = ask([THREE], store=store, identity={"secret": "tests-share-this-secret"})
    assert client.codes("d", user())[0] == OK
    shared_store.client.client_pause(5000)
    calls = [client.start("d", user(), timeout=2) for _ in range(50)]
    answers = [call.result() for call in calls]
    assert [answer.overall_code for answer in answers] == [OK] * 50
    assert headers(answers[-1])["x-weir-source"] == "fallback"
    shared_store.client.client_unpause()


def test_a_call_whose_deadline_has_passed_is_given_up(ask, shared_store):
    store = {"kind": "redis", "url": shared_store.url, "timeout": "5s", "on_failure": "open"}
    client = ask([THREE], store=store, identity={"secret": "tests-share-this-secret"})
    assert client.codes("d", user())[0] == OK
    shared_store.client.client_pause(1000)
    code, _ = client.refusal("d", user(), timeout=0.1)
    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until(lambda: client.codes("d", user("b"))[0] == OK, "the connection goes on")


def test_tls_asks_clients_for_certificates(ask, certificates):
    tls = {"cert": str(certificates.cert), "key": str(certificates.key), "client_ca": str(certificates.ca)}
    client = ask([THREE], listen={"grpc": {"address": "127.0.0.1:0", "tls": tls}})
    root = certificates.ca.read_bytes()
    named = [("grpc.ssl_target_name_override", "localhost")]
    shown = grpc.ssl_channel_credentials(root, certificates.key.read_bytes(), certificates.cert.read_bytes())
    target = client.weir.addresses["grpc"]
    known, unknown = RlsClient(target, shown, named), RlsClient(target, grpc.ssl_channel_credentials(root), named)
    assert known.codes("d", user())[0] == OK
    assert unknown.refusal("d", user())[0] == grpc.StatusCode.UNAVAILABLE
    known.close()
    unknown.close()


def test_old_connections_are_renewed_without_a_failed_call(ask):
    door = {"address": "127.0.0.1:0", "max_connection_age": "100ms"}
    client = ask([{**THREE, "rate": "100000/min"}], listen={"grpc": door})

    def renewed():
        assert client.codes("d", user())[0] == OK
        return client.weir.metric("weir_connections_opened_total", door="grpc") >= 4

    wait_until(renewed, "the client has come back three times")


def test_a_drain_finishes_calls_and_turns_health_first(ask):
    client = ask([{**THREE, "rate": "100000/min"}], timeouts={"drain_delay": "500ms", "drain": "5s"})
    assert client.healthy()
    client.weir.signal(15)
    wait_until(lambda: not client.healthy(), "health says so")
    assert [client.codes("d", user())[0] for _ in range(50)] == [OK] * 50
    assert client.weir.wait() == 0
