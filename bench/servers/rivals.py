"""The servers that are measured: weir, and nginx and haproxy doing the same with their own rate limits."""

import json
from pathlib import Path

from processes import LOAD_CORE, SERVER_CORE, Server, free_port

# High enough that nothing is refused: what is measured is the work of deciding, not of refusing.
RATE_PER_S = 1_000_000


def _write(folder, name, text):
    path = Path(folder) / name
    path.write_text(text)
    return path


def _nginx(name, folder, core, port, http):
    root = Path(folder) / name
    root.mkdir(exist_ok=True)
    temp = "".join(
        f"  {kind}_temp_path {root}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = _write(
        folder,
        f"{name}.conf",
        f"""daemon off;
worker_processes 1;
pid {root}/nginx.pid;
error_log {root}/error.log;
events {{ worker_connections 8192; }}
http {{
  access_log off;
{temp}  keepalive_requests 100000000;
  server_tokens off;
  limit_req_zone $http_authorization zone=clients:32m rate={RATE_PER_S}r/s;
{http}
}}
""",
    )
    command = ["/usr/sbin/nginx", "-e", root / "error.log", "-p", root, "-c", config]
    return Server(name, command, port, core, folder, in_child=True)


def nginx_upstream(folder):
    """What all the proxies forward to, on the load's core."""
    port = free_port()
    http = f"""  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ default_type application/json; return 200 '{{"object":"list","data":[]}}'; }}
  }}"""
    return _nginx("upstream", folder, LOAD_CORE, port, http)


def nginx_answer(folder):
    """Answers by itself, behind limit_req. (`return` would answer in a phase before limit_req is asked.)"""
    port = free_port()
    http = f"""  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ limit_req zone=clients burst=100000 nodelay; empty_gif; }}
  }}"""
    return _nginx("nginx", folder, SERVER_CORE, port, http)


def nginx_proxy(folder, upstream):
    port = free_port()
    http = f"""  upstream up {{ server {upstream}; keepalive 128; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      limit_req zone=clients burst=100000 nodelay;
      proxy_pass http://up;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_buffering off;
    }}
  }}"""
    return _nginx("nginx", folder, SERVER_CORE, port, http)


def _haproxy(folder, port, frontend, backend=""):
    config = _write(
        folder,
        "haproxy.cfg",
        f"""global
  nbthread 1
  maxconn 8192
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  option http-keep-alive
frontend f
  bind 127.0.0.1:{port}
  stick-table type string len 64 size 100k expire 60s store http_req_rate(60s)
  http-request track-sc0 hdr(authorization)
  http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt 1000000000 }}
{frontend}
{backend}
""",
    )
    return Server("haproxy", ["/usr/sbin/haproxy", "-db", "-f", config], port, SERVER_CORE, folder)


def haproxy_answer(folder):
    return _haproxy(folder, free_port(), '  http-request return status 200 content-type text/plain string "ok"')


def haproxy_proxy(folder, upstream):
    backend = f"""backend b
  http-reuse always
  option forwardfor
  server up {upstream} pool-max-conn -1"""
    return _haproxy(folder, free_port(), "  default_backend b", backend)


def weir(binary, folder, limits, upstream=None, core=SERVER_CORE, store=None, trusted_proxies=None):
    """One loop; the server's port is the gateway's with an upstream, else the api's."""
    port = free_port()
    config = {
        "listen": {("gateway" if upstream else "api"): f"127.0.0.1:{port}"},
        "threads": 1,
        "timeouts": {"drain_delay": "0s", "drain": "1s"},
        "limits": limits,
    }
    if upstream:
        config["upstreams"] = [{"name": "up", "urls": [f"http://{upstream}"]}]
        config["routes"] = [{"match": {"path": "/*"}, "upstream": "up"}]
    if trusted_proxies:
        config["identity"] = {"trusted_proxies": trusted_proxies}
    if store:
        config["store"] = store
        config.setdefault("identity", {})["secret"] = "the-benchmark-shares-this-secret"
    path = _write(folder, "weir.yaml", json.dumps(config))  # JSON is YAML.
    command = [binary, "serve", "--config", path, "--log-level", "warn"]
    return Server("weir", command, port, core, folder)


def weir_resp(binary, folder, socket=False):
    """One loop with the resp door, and the ops door where the first is no port to wait for."""
    port = free_port()
    path = Path(folder) / "weir.sock"
    listen = {"resp": f"unix:{path}", "ops": f"127.0.0.1:{port}"} if socket else {"resp": f"127.0.0.1:{port}"}
    timeouts = {"drain_delay": "0s", "drain": "1s"}
    config = _write(folder, "weir.yaml", json.dumps({"listen": listen, "threads": 1, "timeouts": timeouts}))
    server = Server("weir", [binary, "serve", "--config", config, "--log-level", "warn"], port, SERVER_CORE, folder)
    if socket:
        server.address = f"unix:{path}"
    return server


def weir_grpc(binary, folder, limits):
    """One loop with the gRPC door."""
    port = free_port()
    config = {
        "listen": {"grpc": f"127.0.0.1:{port}"},
        "threads": 1,
        "timeouts": {"drain_delay": "0s", "drain": "1s"},
        "limits": limits,
    }
    path = _write(folder, "weir.yaml", json.dumps(config))
    return Server("weir", [binary, "serve", "--config", path, "--log-level", "warn"], port, SERVER_CORE, folder)


def grpc_callbacks(binary, folder):
    port = free_port()
    return Server("grpc++", [Path(binary).parent / "bin" / "rls_rival", port], port, SERVER_CORE, folder)


def redis(folder):
    port = free_port()
    command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    return Server("redis", command, port, SERVER_CORE, folder)


def mock_upstream(binary, folder):
    port = free_port()
    command = [binary, "mock-upstream", "--listen", f"127.0.0.1:{port}"]
    return Server("mock-upstream", command, port, LOAD_CORE, folder)
