"""Clients of several makers over HTTP/2: curl, httpx, OpenAI's library, Node."""

import hashlib
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path

import httpx
import openai
import pytest
from servers import CHAT, PLENTY, ROOT, Upstream, Weir, tls_door, trusting

NODE = Path(__file__).parent / "node"
INSTALL = "scripts/install_packages.sh test installs it"
STREAM = json.dumps({**CHAT, "stream": True}).encode()


@pytest.fixture
def weir(start_weir):
    return start_weir([PLENTY])


class TestCurl:
    @pytest.fixture(autouse=True)
    def installed(self):
        assert shutil.which("curl"), f"curl is missing: {INSTALL}"

    def run(self, *arguments):
        done = subprocess.run(
            ["curl", "-sS", "--max-time", "30", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def test_tls(self, start_weir, certificates):
        weir = start_weir([PLENTY], listen={"gateway": tls_door(certificates)})
        url = f"https://localhost:{weir.address('gateway')[1]}"
        out = self.run("--http2", "-i", "--cacert", str(certificates.ca), f"{url}/v1/models")
        assert out.startswith("HTTP/2 200")
        out = self.run("--http1.1", "-i", "--cacert", str(certificates.ca), f"{url}/v1/models")
        assert out.startswith("HTTP/1.1 200")

    def test_prior_knowledge(self, weir):
        out = self.run("--http2-prior-knowledge", "-i", f"{weir.gateway}/v1/models")
        assert out.startswith("HTTP/2 200") and "x-ratelimit-remaining: " in out

    def test_uploads(self, weir, tmp_path):
        body = tmp_path / "body"
        body.write_bytes(b"0123456789abcdef" * 65536 * 4)
        for options in ([], ["-H", "Expect: 100-continue"], ["-H", "Content-Length:"]):
            out = tmp_path / "out"
            self.run(
                "--http2-prior-knowledge", "--data-binary", f"@{body}", *options, "-o", str(out), f"{weir.gateway}/echo"
            )
            sha256 = hashlib.sha256(body.read_bytes()).hexdigest()
            assert json.loads(out.read_text())["body_sha256"] == sha256

    def test_a_refused_upload(self, start_weir, tmp_path):
        weir = start_weir([{"name": "one", "per": ["client"], "rate": "1/hour"}])
        assert weir.get().status_code == 200
        body = tmp_path / "body"
        body.write_bytes(b"x" * 4_000_000)
        out = self.run("--http2-prior-knowledge", "--data-binary", f"@{body}", "-i", f"{weir.gateway}/echo")
        assert out.startswith("HTTP/2 429") and '"limit":"one"' in out


class TestHttpx:
    def test_calls_on_one_connection(self, start_weir, certificates):
        weir = start_weir([PLENTY], listen={"gateway": tls_door(certificates)})
        url = f"https://localhost:{weir.address('gateway')[1]}"
        with httpx.Client(http2=True, verify=trusting(certificates)) as client:
            for _ in range(5):
                answer = client.get(f"{url}/v1/models")
                assert (answer.http_version, answer.status_code) == ("HTTP/2", 200)
            body = b"0123456789" * 300_000
            assert client.post(f"{url}/echo", content=body).json()["body_bytes"] == len(body)
            assert weir.metric("weir_connections", door="gateway") == 1

    def test_a_large_answer(self, start_weir, certificates):
        weir = start_weir([PLENTY], listen={"gateway": tls_door(certificates)})
        url = f"https://localhost:{weir.address('gateway')[1]}"
        with httpx.Client(http2=True, verify=trusting(certificates), timeout=60) as client:
            fields = {"x-mock-endless-bytes": str(100 << 20)}
            total = 0
            with client.stream("POST", f"{url}/v1/chat/completions", content=STREAM, headers=fields) as answer:
                for part in answer.iter_bytes():
                    total += len(part)
            assert total >= 100 << 20

    def test_a_refused_upload(self, start_weir, certificates):
        weir = start_weir(
            [{"name": "one", "per": ["client"], "rate": "1/hour"}], listen={"gateway": tls_door(certificates)}
        )
        url = f"https://localhost:{weir.address('gateway')[1]}"
        with httpx.Client(http2=True, verify=trusting(certificates)) as client:
            assert client.get(f"{url}/v1/models").status_code == 200
            answer = client.post(f"{url}/v1/chat/completions", content=b"x" * 200_000)
            assert (answer.status_code, answer.http_version) == (429, "HTTP/2")
            assert client.get(f"{url}/v1/models").status_code == 429


class TestOpenAi:
    @pytest.fixture
    def client(self, start_weir, certificates):
        self.weir = start_weir(
            [{"name": "three", "per": ["client"], "rate": "3/hour"}], listen={"gateway": tls_door(certificates)}
        )
        http_client = httpx.Client(http2=True, verify=trusting(certificates))
        url = f"https://localhost:{self.weir.address('gateway')[1]}/v1"
        with openai.OpenAI(base_url=url, api_key="sk-h2", max_retries=0, http_client=http_client) as client:
            yield client

    def test_chat_stream_and_refusal(self, client):
        messages = [{"role": "user", "content": "Hello"}]
        raw = client.chat.completions.with_raw_response.create(model="m-1", messages=messages)
        assert raw.http_response.http_version == "HTTP/2"
        assert raw.parse().choices[0].message.content.startswith("Water runs")
        chunks = list(client.chat.completions.create(model="m-1", messages=messages, stream=True))
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Water runs over the weir "
        assert client.models.list().data
        with pytest.raises(openai.RateLimitError) as refused:
            client.chat.completions.create(model="m-1", messages=messages)
        assert int(refused.value.response.headers["retry-after"]) > 0


class TestNode:
    def test_calls_streams_and_goaway(self, weir):
        assert shutil.which("node"), f"node is missing: {INSTALL}"
        done = subprocess.run(
            ["node", "http2_client.mjs", weir.gateway],
            cwd=NODE,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert seen["models"]["status"] == 200
        assert seen["parallel"] == [200] * 50
        assert seen["echo_bytes"] == 4 << 20
        assert seen["events"] == 6
        assert seen["large_bytes"] >= 64 << 20
        assert seen["trailers"] == {"x-checksum": "abc"}


def test_httpx_and_http1_clients_share_a_limit(start_weir):
    weir = start_weir([{"name": "ten", "per": ["client"], "rate": "10/hour"}])
    statuses = []

    def call(version):
        with httpx.Client(http1=version == 1, http2=version == 2) as client:  # h2c by prior knowledge.
            for _ in range(10):
                statuses.append(client.get(f"{weir.gateway}/v1/models").status_code)

    threads = [threading.Thread(target=call, args=(version,)) for version in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 10 + [429] * 10


def test_the_page_shows_what_happens(started, tmp_path):
    """The commands of docs/http2.md, with ports of their own."""
    page = (ROOT / "docs" / "http2.md").read_text()
    (config,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)
    (console,) = re.findall(r"^```console\n(.*?)^```$", page, re.M | re.S)
    openssl, upstream, serve, *calls = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", console, re.M)

    def run(command):
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(openssl[0])
    assert upstream[0].startswith("weir mock-upstream") and serve[0] == "weir serve --config weir.yaml &"
    stand_in = Upstream()
    started.append(stand_in)
    config = config.replace("127.0.0.1:8090", stand_in.address).replace("127.0.0.1:8443", "127.0.0.1:0")
    weir = Weir(tmp_path, config)
    started.append(weir)
    assert len(calls) == 2
    for command, shown in calls:
        assert run(command.replace("127.0.0.1:8443", weir.addresses["gateway"])) == shown
