"""The ops door and the logs: the series of the documentation, their bounds, and lines for programs."""

import re
import shutil
import subprocess

import httpx
from servers import http, samples, wait_until

SERIES = [
    "weir_decisions_total",
    "weir_limit_decisions_total",
    "weir_limit_near_total",
    "weir_decision_duration_seconds_count",
    "weir_store_request_duration_seconds_count",
    "weir_store_keys",
    "weir_connections",
    "weir_streams",
    "weir_build_info",
    "weir_config_last_reload_successful",
    "weir_connections_refused_total",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_open_fds",
]


def exercise(weir):
    for _ in range(5):
        weir.get(key="a")
    weir.chat(key="b", stream=True)
    weir.decide({"client": "c"})


def test_the_documented_series_are_there(start_weir):
    weir = start_weir([{"name": "three", "per": ["client"], "rate": "3/hour"}])
    exercise(weir)
    page = weir.metrics()
    for name in SERIES:
        assert samples(page, name), name
    assert re.search(r"^weir_upstream_", page, re.M)
    assert weir.metric("weir_decisions_total", door="gateway", outcome="allowed") == 4
    assert weir.metric("weir_decisions_total", door="gateway", outcome="denied") == 2
    assert weir.metric("weir_decisions_total", door="api", outcome="allowed") == 1
    assert weir.metric("weir_limit_decisions_total", limit="three", layer="client", outcome="denied") == 2


def test_promtool_finds_nothing_to_complain_of(start_weir):
    assert shutil.which("promtool"), "promtool is missing: scripts/install_packages.sh test installs prometheus"
    weir = start_weir([{"name": "three", "per": ["client"], "rate": "3/hour"}])
    exercise(weir)
    run = subprocess.run(
        ["promtool", "check", "metrics"], input=weir.metrics(), capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout + run.stderr == ""


def test_case47_series_do_not_grow_with_the_clients(start_weir):
    weir = start_weir([{"name": "none", "per": ["client"], "rate": "0/hour"}])

    def series():
        lines = [line for line in weir.metrics().splitlines() if line and not line.startswith("#")]
        return [line.rpartition(" ")[0] for line in lines]

    with httpx.Client(timeout=60) as client:
        client.post(f"{weir.api}/v1/check", json={"attributes": {"client": "secret-client-0"}})
        weir.get(key="sk-secret-0")
        before = series()
        for begin in range(0, 100_000, 1000):
            checks = [{"attributes": {"client": f"secret-client-{i}"}} for i in range(begin, begin + 1000)]
            client.post(f"{weir.api}/v1/check", json={"checks": checks})
    after = series()
    assert weir.metric("weir_limit_decisions_total", limit="none", outcome="denied") == 100_002
    new = set(after) - set(before)
    assert len(new) <= 100
    assert all(name.startswith("weir_limit_remaining_ratio") for name in new), sorted(new)[:3]
    assert not any("secret-client" in name or "sk-secret" in name for name in after)


def test_log_lines_are_json_with_the_call_s_outcome(start_weir):
    weir = start_weir([{"name": "one", "per": ["client", "model"], "rate": "1/hour"}])
    weir.chat(key="a", headers={"x-request-id": "first"})
    weir.chat(key="a", headers={"x-request-id": "second"})

    def both():
        lines = {line.get("request_id"): line for line in weir.log_lines()}
        return lines if {"first", "second"} <= lines.keys() else None

    lines = wait_until(both, "both calls in the log")
    for line in lines.values():
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["ts"])
    first, second = lines["first"], lines["second"]
    assert (first["level"], first["outcome"], first["status"], first["model"]) == ("info", "allowed", 200, "mock-1")
    assert first["client"].startswith("key:") and first["upstream"] == "ai" and float(first["duration_s"]) > 0
    assert (second["outcome"], second["status"], second["limit"], second["source"]) == ("denied", 429, "one", "memory")


def test_the_summary_counts_decisions(start_weir):
    weir = start_weir([{"name": "one", "per": ["client"], "rate": "1/hour"}], options=["--summary-every", "0.2"])
    weir.get(key="a")
    weir.get(key="a")

    def counted():
        lines = weir.log_lines("summary")
        return (
            lines
            and sum(int(line["allowed"]) for line in lines) == 1
            and sum(int(line["denied"]) for line in lines) == 1
        )

    wait_until(counted, "one allowed and one denied over the summaries")
    assert {"connections", "keys"} <= weir.log_lines("summary")[-1].keys()


def test_top_names_the_clients_that_are_denied_most(start_weir):
    weir = start_weir([{"name": "none", "per": ["client"], "rate": "0/hour"}])
    for client, count in (("often", 9), ("rarely", 2)):
        for _ in range(count):
            weir.decide({"client": client})
    top = http.get(f"{weir.admin}/admin/top", params={"by": "denied", "n": 1})
    assert top.status_code == 200
    assert top.text.count("often") >= 1 and "rarely" not in top.text


def test_reset_gives_the_full_quota_back(start_weir):
    weir = start_weir([{"name": "one", "per": ["client"], "rate": "1/hour"}])
    assert weir.decide({"client": "a"})["allowed"]
    assert not weir.decide({"client": "a"})["allowed"]
    body = {"limit": "one", "attributes": {"client": "a"}}
    assert http.post(f"{weir.admin}/admin/reset", json=body).status_code == 200
    assert weir.decide({"client": "a"})["allowed"]
    absent = http.post(f"{weir.admin}/admin/reset", json={"limit": "two", "attributes": {"client": "a"}})
    assert absent.status_code == 404
