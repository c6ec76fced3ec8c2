"""The quick start does what `make run` says of it, on ports of the test's own."""

import re
import subprocess
import time

import httpx
import pytest
import yaml
from servers import ROOT, http

QUICKSTART = ROOT / "examples" / "quickstart.yaml"


@pytest.fixture
def quickstart(start_weir, upstream):
    """The example itself: only its ports and its upstream are others."""
    config = yaml.safe_load(QUICKSTART.read_text())
    for door, value in config["listen"].items():
        if isinstance(value, dict):
            value["address"] = "127.0.0.1:0"
        else:
            config["listen"][door] = "127.0.0.1:0"
    config["upstreams"][0]["urls"] = [upstream.url]
    return start_weir(text=yaml.safe_dump(config, sort_keys=False))


def pasted(weir):
    """The commands that scripts/run.sh prints, aimed at this server."""
    script = (ROOT / "scripts" / "run.sh").read_text()
    text = re.search(r"Paste into another terminal:\n(.*?)\nTEXT", script, re.S)[1]
    commands = [line.strip() for line in text.splitlines() if line.startswith("   ")]
    return [
        line.replace("http://$gateway", weir.gateway).replace("http://127.0.0.1:8080", weir.gateway).replace("\\$", "$")
        for line in commands
    ]


def run(command):
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False).stdout


def test_the_ports_are_those_of_the_documentation(weir_command):
    listen = yaml.safe_load(QUICKSTART.read_text())["listen"]
    ports = {
        door: int(str(v["address"] if isinstance(v, dict) else v).rpartition(":")[2]) for door, v in listen.items()
    }
    assert ports == {"gateway": 8080, "api": 8081, "admin": 8082, "ops": 9090}
    assert weir_command("validate", QUICKSTART).returncode == 0


def test_the_three_commands_to_paste(quickstart):
    commands = pasted(quickstart)
    assert len(commands) == 3
    allowed = run(commands[0])
    assert allowed.startswith("HTTP/1.1 200 OK")
    assert "x-ratelimit-remaining" in allowed.lower() and '"usage"' in allowed
    refused = run(commands[1])
    assert "200" in refused
    assert re.search(r"429 retry-after: [1-9]", refused)
    streamed = run(commands[2])
    assert streamed.count("data: {") > 3 and "data: [DONE]" in streamed


def test_one_client_is_refused_within_100_quick_calls(quickstart):
    with httpx.Client(headers={"authorization": "Bearer any-key-at-all"}) as client:
        began = time.monotonic()
        statuses = [client.get(f"{quickstart.gateway}/v1/models").status_code for _ in range(100)]
        assert time.monotonic() - began < 30
    assert statuses[0] == 200
    assert 429 in statuses
    assert http.get(f"{quickstart.gateway}/v1/models", headers={"authorization": "Bearer another"}).status_code == 200


def test_there_is_a_limit_per_address(weir_command):
    words = weir_command("validate", QUICKSTART).stdout
    limits = yaml.safe_load(QUICKSTART.read_text())["limits"]
    assert any(limit.get("per") == ["ip"] for limit in limits)
    assert all(limit["name"] in words for limit in limits)
