"""Real clients against the gateway: openai-python, openai-node, anthropic, curl."""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import anthropic
import openai
import pytest

NODE = Path(__file__).parent / "node"
MESSAGES = [{"role": "user", "content": "Hello"}]
INSTALL = "scripts/install_packages.sh test installs it"


# What is missing fails the tests: a skipped test shows nothing.
@pytest.fixture(scope="module")
def curl():
    assert shutil.which("curl"), f"curl is missing: {INSTALL}"


@pytest.fixture(scope="module")
def node():
    assert shutil.which("node"), f"node is missing: {INSTALL}"
    assert (NODE / "node_modules" / "openai").exists(), f"tests/node/node_modules/openai is missing: {INSTALL}"


@pytest.fixture
def weir(start_weir):
    return start_weir([{"name": "plenty", "per": ["client"], "rate": "1000/hour"}])


def openai_client(weir, key="sk-python", **options):
    return openai.OpenAI(base_url=f"{weir.gateway}/v1", api_key=key, **{"max_retries": 0, **options})


class TestOpenAiPython:
    def test_chat(self, weir):
        answer = openai_client(weir).chat.completions.create(model="m-1", messages=MESSAGES)
        assert answer.model == "m-1"
        assert answer.choices[0].message.content.startswith("Water runs")
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (13, 33)

    def test_stream(self, weir):
        stream = openai_client(weir).chat.completions.create(model="m-1", messages=MESSAGES, stream=True)
        chunks = list(stream)
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Water runs over the weir "
        assert chunks[-1].choices[0].finish_reason == "stop"
        assert all(chunk.usage is None for chunk in chunks)

    def test_stream_with_usage(self, weir):
        stream = openai_client(weir).chat.completions.create(
            model="m-1", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
        last = list(stream)[-1]
        assert last.choices == []
        assert last.usage.total_tokens == 46

    def test_responses(self, weir):
        client = openai_client(weir)
        assert client.responses.create(model="m-1", input="Hello").output_text.startswith("Water runs")
        events = list(client.responses.create(model="m-1", input="Hello", stream=True))
        assert events[0].type == "response.created"
        assert events[-1].type == "response.completed"
        assert events[-1].response.usage.total_tokens == 46

    def test_embeddings_and_models(self, weir):
        client = openai_client(weir)
        assert client.embeddings.create(model="m-1", input="Hello").data[0].embedding == [0.125, -0.25, 0.5]
        assert [model.id for model in client.models.list()] == ["mock-1", "mock-2"]

    def test_limit_headers(self, weir):
        raw = openai_client(weir).models.with_raw_response.list()
        assert raw.headers["x-ratelimit-limit-requests"] == "1000"
        assert raw.headers["x-ratelimit-remaining-requests"] == "999"
        assert re.fullmatch(r"(\d+h)?(\d+m)?\d+(\.\d+)?(s|ms|µs)", raw.headers["x-ratelimit-reset-requests"])

    def test_429_then_success_after_the_announced_wait(self, start_weir):
        weir = start_weir([{"name": "slow", "per": ["client"], "rate": "2/s", "burst": 1}])
        client = openai_client(weir)
        client.models.list()
        with pytest.raises(openai.RateLimitError) as refused:
            client.models.list()
        assert refused.value.status_code == 429
        assert refused.value.code == "rate_limit_exceeded"
        assert refused.value.type == "requests"
        announced_ms = int(refused.value.response.headers["retry-after-ms"])
        assert 0 < announced_ms <= 500
        time.sleep(announced_ms / 1000)
        client.models.list()

    def test_the_sdk_s_own_retries_wait_as_announced(self, start_weir):
        weir = start_weir([{"name": "slow", "per": ["client"], "rate": "2/s", "burst": 1}])
        client = openai_client(weir, max_retries=2)
        began = time.monotonic()
        for _ in range(3):
            client.chat.completions.create(model="m-1", messages=MESSAGES)
        assert time.monotonic() - began >= 0.9
        # Each call after the first was refused once, waited, and passed.
        assert weir.metric("weir_decisions_total", outcome="allowed") == 3
        assert weir.metric("weir_decisions_total", outcome="denied") == 2

    def test_a_wait_of_more_than_a_minute_is_not_retried(self, start_weir):
        weir = start_weir([{"name": "rare", "per": ["client"], "rate": "1/hour"}])
        client = openai_client(weir, max_retries=2)
        client.models.list()
        with pytest.raises(openai.RateLimitError) as refused:
            client.models.list()
        assert refused.value.response.headers["x-should-retry"] == "false"
        assert weir.metric("weir_decisions_total", outcome="denied") == 1


class TestAnthropic:
    @staticmethod
    def client(weir, **options):
        return anthropic.Anthropic(base_url=weir.gateway, api_key="sk-ant", **{"max_retries": 0, **options})

    def test_messages(self, weir):
        answer = self.client(weir).messages.create(model="m-1", max_tokens=50, messages=MESSAGES)
        assert answer.content[0].text.startswith("Water runs")
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (13, 33)

    def test_stream(self, weir):
        with self.client(weir).messages.stream(model="m-1", max_tokens=50, messages=MESSAGES) as stream:
            assert "".join(stream.text_stream) == "Water runs over the weir "
            assert stream.get_final_message().usage.output_tokens == 33

    def test_429(self, start_weir):
        weir = start_weir([{"name": "slow", "per": ["client"], "rate": "2/s", "burst": 1}])
        client = self.client(weir)
        client.messages.create(model="m-1", max_tokens=50, messages=MESSAGES)
        with pytest.raises(anthropic.RateLimitError) as refused:
            client.messages.create(model="m-1", max_tokens=50, messages=MESSAGES)
        assert refused.value.body["error"]["type"] == "rate_limit_error"
        self.client(weir, max_retries=2).messages.create(model="m-1", max_tokens=50, messages=MESSAGES)


@pytest.mark.usefixtures("node")
class TestOpenAiNode:
    @staticmethod
    def run(weir, scenario):
        run = subprocess.run(
            ["node", str(NODE / "openai_client.mjs"), f"{weir.gateway}/v1", scenario],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    def test_calls(self, weir):
        seen = self.run(weir, "calls")
        assert seen["chat"]["content"].startswith("Water runs")
        assert seen["chat"]["total_tokens"] == 46
        assert seen["stream"] == "Water runs over the weir "
        assert seen["stream_usage"] == 46
        assert seen["embedding"] == [0.125, -0.25, 0.5]
        assert seen["models"] == ["mock-1", "mock-2"]
        assert seen["response"].startswith("Water runs")

    def test_429_then_success_after_the_announced_wait(self, start_weir):
        weir = start_weir([{"name": "slow", "per": ["client"], "rate": "2/s", "burst": 1}])
        seen = self.run(weir, "limited")
        assert seen["refused"] == {"status": 429, "code": "rate_limit_exceeded", "name": "RateLimitError"}
        assert seen["after_wait"] == 200
        assert seen["with_retries"] == "Water runs over the weir "


@pytest.mark.usefixtures("curl")
class TestCurl:
    @staticmethod
    def run(*arguments):
        run = subprocess.run(
            ["curl", "-sS", "--max-time", "20", *arguments], capture_output=True, text=True, timeout=30, check=False
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    def test_a_call_shows_its_limits(self, weir):
        out = self.run("-i", f"{weir.gateway}/v1/models", "-H", "Authorization: Bearer a")
        assert out.startswith("HTTP/1.1 200 OK")
        assert "x-ratelimit-limit: 1000" in out.lower()

    def test_a_stream(self, weir):
        body = json.dumps({"model": "m", "messages": MESSAGES, "stream": True})
        out = self.run("-N", f"{weir.gateway}/v1/chat/completions", "-H", "Content-Type: application/json", "-d", body)
        assert out.count("data: {") == 7
        assert out.endswith("data: [DONE]\n\n")

    def test_upload_with_100_continue(self, weir, tmp_path):
        body = tmp_path / "body"
        body.write_bytes(b"x" * (2 << 20))
        out = self.run("-T", str(body), f"{weir.gateway}/echo", "-H", "Expect: 100-continue")
        assert json.loads(out)["body_bytes"] == 2 << 20

    def test_head(self, weir):
        assert self.run("-I", f"{weir.gateway}/v1/models").startswith("HTTP/1.1 200 OK")
