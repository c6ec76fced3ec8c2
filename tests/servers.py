"""Starts the binary under test and the servers around it: each on port 0, each ended by its own process id."""

import contextlib
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time
from pathlib import Path

import httpx
import yaml

ROOT = Path(__file__).resolve().parent.parent
BINARY = os.environ.get("WEIR_BINARY", str(ROOT / "build" / "weir"))
# Sanitizer builds are an order of magnitude slower; every bound below is a bound against hanging, not a measurement.
PATIENCE_S = float(os.environ.get("WEIR_TEST_PATIENCE_S", "30"))


class Http:
    """One request on a connection of its own. (httpx's own functions load all certificates for each call.)"""

    def __getattr__(self, method):
        return lambda url, **options: httpx.request(method.upper(), url, verify=False, **options)


http = Http()

# A call that the stand-in upstream answers.
CHAT = {"model": "mock-1", "messages": [{"role": "user", "content": "Hello"}]}

# A limit that no test reaches.
PLENTY = {"name": "plenty", "per": ["client"], "rate": "1000/hour"}


def wait_until(condition, what, timeout_s=PATIENCE_S, interval_s=0.01):
    """The condition's first true value; an AssertionError naming `what` when there is none in time."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(interval_s)


def tls_door(certificates, **more):
    """A door of `listen` with TLS. `more`: client_ca."""
    return {"address": "127.0.0.1:0", "tls": {"cert": str(certificates.cert), "key": str(certificates.key), **more}}


def trusting(certificates, *protocols):
    """The context of a client that trusts them and offers these protocols (ALPN)."""
    context = ssl.create_default_context(cafile=str(certificates.ca))
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


class Process:
    """A child process with its output collected by line."""

    def __init__(self, arguments, name, env=None, cwd=None):
        self.name = name
        self.stdout = []
        self.stderr = []
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=cwd,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(self._process.stdout, self.stdout), daemon=True),
            threading.Thread(target=self._read, args=(self._process.stderr, self.stderr), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(pipe, lines):
        for line in pipe:
            lines.append(line.decode(errors="replace").rstrip("\n"))

    @property
    def pid(self):
        return self._process.pid

    def running(self):
        return self._process.poll() is None

    def signal(self, number):
        self._process.send_signal(number)

    def pause(self):
        """SIGSTOP, and the moment in which every thread stands still."""
        self.signal(signal.SIGSTOP)

        def stands_still():
            stats = [path.read_text() for path in Path(f"/proc/{self.pid}/task").glob("*/stat")]
            return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)

        wait_until(stands_still, f"{self.name} stands still")

    def wait(self, timeout_s=PATIENCE_S):
        """The exit code, once the output is read to its end."""
        code = self._process.wait(timeout_s)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        return code

    def stop(self, timeout_s=PATIENCE_S):
        """SIGTERM and the exit code; SIGKILL if that takes too long."""
        if self.running():
            self.signal(signal.SIGTERM)
        try:
            return self.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self.wait()
            raise

    def kill(self):
        if self.running():
            self._process.kill()
        self.wait()

    def rss_bytes(self):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def report(self):
        tail = [*self.stdout[-10:], *self.stderr[-25:]]
        return "\n".join(tail) or "(no output)"

    def _listening(self):
        found = {}
        for line in list(self.stdout):
            if match := re.fullmatch(r"listening ([a-z_]+)=(.+)", line):
                found[match[1]] = match[2]
        return found

    def wait_listening(self, doors):
        def ready():
            if not self.running():
                self.wait()
                raise AssertionError(f"{self.name} ended at once:\n{self.report()}")
            found = self._listening()
            return found if set(doors) <= set(found) else None

        return wait_until(ready, f"{self.name} listens on {sorted(doors)}")


class Upstream(Process):
    """`weir mock-upstream`."""

    def __init__(self, *options, env=None):
        super().__init__([BINARY, "mock-upstream", "--listen", "127.0.0.1:0", *options], "mock-upstream", env=env)
        self.tls = "--cert" in options
        self.address = self.wait_listening(["upstream"])["upstream"]
        self.url = f"{'https' if self.tls else 'http'}://{self.address}"
        self.port = int(self.address.rpartition(":")[2])

    def stats(self):
        return http.get(f"{self.url}/mock/stats").json()

    def requests_for(self, path):
        return self.stats()["by_path"].get(path, 0)


BASE = {
    "listen": {
        "gateway": "127.0.0.1:0",
        "api": "127.0.0.1:0",
        "admin": "127.0.0.1:0",
        "ops": "127.0.0.1:0",
    },
    "threads": 2,
    "timeouts": {"drain_delay": "0s", "drain": "1s"},
}


def make_config(limits=(), upstream=None, routes=None, **sections):
    """A configuration as plain data: every door on port 0, `upstream` (a URL or several) behind all paths."""
    config = {key: dict(value) if isinstance(value, dict) else value for key, value in BASE.items()}
    for name, value in sections.items():
        if isinstance(value, dict) and isinstance(config.get(name), dict):
            config[name] = {**config[name], **value}
        else:
            config[name] = value
    config["listen"] = {door: address for door, address in config["listen"].items() if address is not None}
    if upstream is not None and "upstreams" not in config:
        urls = [upstream] if isinstance(upstream, str) else list(upstream)
        config["upstreams"] = [{"name": "ai", "urls": urls}]
    if "upstreams" in config:
        config["routes"] = routes or [{"match": {"path": "/*"}, "upstream": "ai"}]
    config["limits"] = list(limits)
    return config


class Weir(Process):
    """`weir serve` on a configuration of its own folder."""

    def __init__(self, folder, config, env=None, options=(), wrapper=()):
        self.folder = Path(folder)
        self.config_path = self.folder / "weir.yaml"
        self.write(config)
        super().__init__(
            [*wrapper, BINARY, "serve", "--config", str(self.config_path), *options], "weir", env=env, cwd=self.folder
        )
        self._clock_stands_still = "FAKETIME_TIMESTAMP_FILE" in (env or {})
        loaded = yaml.safe_load(self.config_path.read_text())
        self.addresses = self.wait_listening(loaded["listen"].keys())

    def stop(self, timeout_s=PATIENCE_S):
        if self._clock_stands_still and self.running():
            # A drain waits for a time that does not come; asked twice, the server ends at once.
            self.signal(signal.SIGTERM)
            wait_until(lambda: self.log_lines("draining") or not self.running(), "the drain has begun", timeout_s)
        return super().stop(timeout_s)

    def write(self, config):
        text = config if isinstance(config, str) else yaml.safe_dump(config, sort_keys=False)
        self.config_path.write_text(text)

    def url(self, door):
        return f"http://{self.addresses[door]}"

    @property
    def gateway(self):
        return self.url("gateway")

    @property
    def api(self):
        return self.url("api")

    @property
    def admin(self):
        return self.url("admin")

    @property
    def ops(self):
        return self.url("ops")

    def address(self, door):
        host, _, port = self.addresses[door].rpartition(":")
        return host.strip("[]"), int(port)

    # --- The decision API.

    def check(self, attributes=None, cost=None, status=None, **more):
        body = dict(more)
        if attributes is not None:
            body["attributes"] = attributes
        if cost is not None:
            body["cost"] = cost
        query = {"status": status} if status else None
        return http.post(f"{self.api}/v1/check", json=body, params=query)

    def decide(self, attributes=None, cost=None, **more):
        answer = self.check(attributes, cost, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    # --- The gateway.

    def get(self, path="/v1/models", key=None, headers=None, **more):
        headers = {**(headers or {}), **({"authorization": f"Bearer {key}"} if key else {})}
        return http.get(self.gateway + path, headers=headers, timeout=PATIENCE_S, **more)

    def chat(self, key=None, headers=None, path="/v1/chat/completions", **body):
        headers = {**(headers or {}), **({"authorization": f"Bearer {key}"} if key else {})}
        body = {"model": "mock-1", "messages": [{"role": "user", "content": "Hello"}], **body}
        return http.post(self.gateway + path, json=body, headers=headers, timeout=PATIENCE_S)

    # --- Admin and ops.

    def reload(self):
        return http.post(f"{self.admin}/admin/reload")

    def hup(self):
        """SIGHUP, and the log line of the reload that it made."""
        before = len(self.log_lines("reload"))
        self.signal(signal.SIGHUP)
        return wait_until(lambda: self.log_lines("reload")[before:], "a reload in the log")[-1]

    def metrics(self):
        return http.get(f"{self.ops}/metrics").text

    def metric(self, name, **labels):
        """The sum of the samples of that name whose labels include these."""
        return sum(value for found, value in samples(self.metrics(), name) if labels.items() <= found.items())

    def log_lines(self, message_start=None):
        lines = []
        for line in list(self.stderr):
            with contextlib.suppress(json.JSONDecodeError):
                lines.append(json.loads(line))
        if message_start is None:
            return lines
        return [line for line in lines if line.get("message", "").startswith(message_start)]


def samples(text, name):
    """(labels, value) of each sample of one name in a Prometheus page."""
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"([a-zA-Z_:]+)(?:\{(.*)\})? (\S+)", line)
        if match and match[1] == name:
            labels = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            found.append((labels, float(match[3])))
    return found
