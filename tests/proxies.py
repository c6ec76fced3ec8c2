"""The proxies of examples/, run as they stand there: only the ports are others."""

import os
import re
import shutil
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
from servers import PATIENCE_S, ROOT, Process, wait_until

EXAMPLES = ROOT / "examples"
# What the files of examples/ say: the proxy, Weir, Weir over gRPC, the application.
PROXY, WEIR, WEIR_GRPC, APP = "8080", "8081", "8083", "8090"
SPARE = "8088"  # A port of the proxy's own.


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class App:
    """The application behind the proxies. It keeps what reaches it: (method, path, headers, body)."""

    def __init__(self):
        self.requests = []
        app = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                app.requests.append((self.command, self.path, self.headers, self._body()))
                status = int(self.headers.get("x-answer") or 200)
                self.send_response(status)
                self.send_header("Content-Length", "3")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(b"app")

            def _body(self):
                if self.headers.get("transfer-encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("content-length") or 0))
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def log_message(self, *_):
                pass

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE_S)


class Proxy(Process):
    """A proxy with its example, in a folder of its own. `fail_open`: changed as its page in docs/ says."""

    example = ""  # Below examples/.
    fail_open = ("", "")  # What is put in place of what.
    # What its clients see while Weir is away.
    away_statuses = {503}

    def __init__(self, folder, weir_port, app_port, fail_open=False):
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._ports = {PROXY: self.port, WEIR: weir_port, WEIR_GRPC: weir_port, APP: app_port, SPARE: free_port()}
        text = self._example_text(self.example)
        if fail_open:
            assert self.fail_open[0] in text
            text = text.replace(*self.fail_open)
        config = folder / self.example.rpartition("/")[2]
        config.write_text(text)
        super().__init__(self.command(config), self.example.partition("/")[0], env={"HOME": str(folder)}, cwd=folder)
        wait_until(self._answers, f"{self.name} listens")

    def _example_text(self, example):
        text = (EXAMPLES / example).read_text()
        return re.sub(rf"\b(?:{'|'.join(self._ports)})\b", lambda match: str(self._ports[match[0]]), text)

    def command(self, config):
        raise NotImplementedError

    def _answers(self):
        assert self.running(), self.report()
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def client(self, address="127.0.0.1", **options):
        """A client at that address; all of 127.0.0.0/8 are this machine's."""
        transport = httpx.HTTPTransport(local_address=address, verify=False)
        return httpx.Client(base_url=self.url, transport=transport, timeout=PATIENCE_S, **options)


class Nginx(Proxy):
    example = "nginx/weir.conf"
    fail_open = ("# fail open: ", "")

    def command(self, config):
        temp = "".join(f"{kind}_temp_path {kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;" if os.geteuid() == 0 else ""  # Who may write into this folder.
        main = self.folder / "nginx.conf"
        main.write_text(
            f"{user} daemon off; worker_processes 1; pid nginx.pid; error_log stderr; events {{}}\n"
            f"http {{ access_log off; {temp} include {config}; }}\n"
        )
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        return [nginx, "-e", "stderr", "-p", str(self.folder), "-c", str(main)]


class Caddy(Proxy):
    example = "caddy/Caddyfile"
    fail_open = ("# fail open: ", "")
    away_statuses = {502, 504}

    def command(self, config):
        return ["caddy", "run", "--config", str(config), "--adapter", "caddyfile"]


class Envoy(Proxy):
    example = "envoy/envoy.yaml"
    fail_open = ("failure_mode_allow: false", "failure_mode_allow: true")

    def command(self, config):
        envoy = shutil.which("envoy", path=str(Path(sys.executable).parent)) or "envoy"
        return [envoy, "-c", str(config), "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warning"]


class EnvoyRateLimit(Envoy):
    """Asks the rate limit service in place of ext_authz."""

    example = "envoy/rate-limit.yaml"
    fail_open = ("failure_mode_deny: true", "failure_mode_deny: false")


class HaProxy(Proxy):
    example = "haproxy/haproxy.cfg"
    fail_open = ("unless { var(txn.weir_status) -m int 200 }", "unless { var(txn.weir_status) -m int 200 0 }")

    def command(self, config):
        (self.folder / "weir.lua").write_text(self._example_text("haproxy/weir.lua"))
        return [shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", str(config)]


PROXIES = [Nginx, Caddy, Envoy, HaProxy]
