"""The gateway forwards: what goes through, what is added, what stays, and what a faulty upstream becomes."""

import hashlib
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from raw_http import RawConnection, exchange
from servers import http, wait_until


def echo(answer):
    """The upstream's account of what arrived, its headers as a dict of lists."""
    seen = answer.json()
    headers = {}
    for name, value in seen["headers"]:
        headers.setdefault(name.lower(), []).append(value)
    return {**seen, "headers": headers}


# --- Forwarding


def test_a_call_arrives_as_it_was_sent(start_weir):
    weir = start_weir()
    answer = http.put(f"{weir.gateway}/echo/a%2Fb?x=1&y=%20", content=b"body", headers={"x-custom": "1"})
    seen = echo(answer)
    assert (seen["method"], seen["target"], seen["body"]) == ("PUT", "/echo/a%2Fb?x=1&y=%20", "body")
    assert seen["headers"]["x-custom"] == ["1"]
    assert seen["headers"]["x-forwarded-for"] == ["127.0.0.1"]
    assert seen["headers"]["x-forwarded-proto"] == ["http"]
    assert seen["headers"]["x-forwarded-host"] == [weir.addresses["gateway"]]


def test_one_canonical_path_for_matching_and_forwarding(start_weir):
    limits = [{"name": "secret", "per": [], "rate": "0/min", "match": {"path": "/echo/secret"}}]
    weir = start_weir(limits)
    for target in ("/echo/secret", "/echo/./secret", "/echo/x/../secret", "/echo//secret", "/echo/s%65cret"):
        answer = exchange(weir.address("gateway"), f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")
        assert answer.status == 429, target
    answer = exchange(weir.address("gateway"), "GET /echo//%7Ea/../b HTTP/1.1\r\nHost: a\r\n\r\n")
    assert json.loads(answer.body)["target"] == "/echo/b"
    assert exchange(weir.address("gateway"), "GET /../a HTTP/1.1\r\nHost: a\r\n\r\n").status == 400


def test_hop_by_hop_fields_stop_here(start_weir):
    weir = start_weir()
    request = (
        "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
        "TE: trailers\r\nProxy-Authorization: Basic eA==\r\nX-Stay: 1\r\n\r\n"
    )
    seen = json.loads(exchange(weir.address("gateway"), request).body)
    names = {name.lower() for name, _ in seen["headers"]}
    assert "x-stay" in names
    assert not names & {"x-hop", "keep-alive", "proxy-authorization", "te"}


def test_the_upstream_s_credential_takes_the_client_s_place(start_weir, upstream):
    weir = start_weir(
        upstreams=[{"name": "ai", "urls": [upstream.url], "headers": {"authorization": "Bearer upstream-key"}}]
    )
    assert echo(weir.get("/echo", key="client-key"))["headers"]["authorization"] == ["Bearer upstream-key"]


def test_routes_and_prefix_rewrite(start_weir, upstream):
    weir = start_weir(
        upstreams=[{"name": "ai", "urls": [upstream.url + "/base"]}],
        routes=[{"match": {"path": "/v1/*"}, "upstream": "ai", "rewrite": {"prefix": "/echo/v2"}}],
    )
    assert echo(weir.get("/v1/things?q=1"))["target"] == "/base/echo/v2/things?q=1"
    assert weir.get("/other").status_code == 404


def test_request_ids_are_kept_or_made_and_logged(start_weir):
    weir = start_weir()
    kept = echo(
        weir.get("/echo", headers={"x-request-id": "my-id", "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"})
    )
    assert kept["headers"]["x-request-id"] == ["my-id"]
    assert kept["headers"]["traceparent"] == ["00-" + "a" * 32 + "-" + "b" * 16 + "-01"]
    (made,) = echo(weir.get("/echo"))["headers"]["x-request-id"]
    assert len(made) >= 16
    wanted = {"my-id", made}
    wait_until(lambda: wanted <= {line.get("request_id") for line in weir.log_lines()}, "both calls in the log")
    (line,) = [x for x in weir.log_lines() if x.get("request_id") == "my-id"]
    assert line["trace_id"] == "a" * 32
    assert line["status"] == 200 and line["outcome"] == "allowed" and line["upstream"]


def test_large_bodies_stream_through_both_ways(start_weir):
    weir = start_weir()
    body = bytes(range(256)) * (24 << 12)  # 24 MiB
    before = weir.rss_bytes()
    seen = http.post(f"{weir.gateway}/echo", content=body, timeout=60).json()
    assert seen["body_bytes"] == len(body)
    assert seen["body_sha256"] == hashlib.sha256(body).hexdigest()

    chunks = [body[i : i + 100_000] for i in range(0, 4 << 20, 100_000)]
    seen = http.post(f"{weir.gateway}/echo", content=iter(chunks), timeout=60).json()
    assert seen["body_sha256"] == hashlib.sha256(b"".join(chunks)).hexdigest()

    answer = http.get(f"{weir.gateway}/bytes?x-mock-body-bytes={24 << 20}", timeout=60)
    assert answer.content == b"x" * (24 << 20)
    assert weir.rss_bytes() - before < 16 << 20


def test_a_body_beyond_the_bound_is_413(start_weir):
    weir = start_weir(bounds={"body": "1MiB"})
    assert http.post(f"{weir.gateway}/echo", content=b"x" * (1 << 20)).status_code == 200
    assert http.post(f"{weir.gateway}/echo", content=b"x" * ((1 << 20) + 1)).status_code == 413
    with RawConnection(weir.address("gateway")) as connection:
        connection.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        for _ in range(17):
            connection.send(chunk)
        assert connection.read_answer().status == 413


def test_a_head_beyond_the_bound_is_431(start_weir):
    weir = start_weir(bounds={"header": "4KiB"})
    answer = exchange(weir.address("gateway"), f"GET /echo HTTP/1.1\r\nHost: a\r\nX-Long: {'x' * 5000}\r\n\r\n")
    assert answer.status == 431


def test_expect_100_continue(start_weir):
    weir = start_weir()
    with RawConnection(weir.address("gateway")) as connection:
        connection.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert connection.read_head().status == 100
        connection.send("body")
        answer = connection.read_answer()
    assert json.loads(answer.body)["body"] == "body"


def test_a_denied_call_is_told_before_its_body_is_sent(start_weir):
    weir = start_weir([{"name": "none", "per": [], "rate": "0/min"}])
    with RawConnection(weir.address("gateway")) as connection:
        connection.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert connection.read_answer().status == 429


def test_head_chunked_and_trailers(start_weir):
    weir = start_weir()
    head = exchange(weir.address("gateway"), "HEAD /v1/models HTTP/1.1\r\nHost: a\r\n\r\n", head_only=True)
    assert head.status == 200
    assert int(head.get("content-length")) > 0

    seen = json.loads(
        exchange(
            weir.address("gateway"),
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n"
            "3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n",
        ).body
    )
    assert seen["body"] == "abc"
    assert [name.lower() for name, _ in seen["trailers"]] == ["x-sum"]

    with RawConnection(weir.address("gateway")) as connection:
        connection.send("GET /v1/models?x-mock-trailers=X-Sum:7 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        raw = connection.read_to_end()
    assert b"x-sum: 7" in raw.lower()


def test_http_1_0_clients_get_what_they_understand(start_weir):
    weir = start_weir()
    answer = exchange(weir.address("gateway"), "GET /v1/models?x-mock-chunked=1 HTTP/1.0\r\n\r\n")
    assert answer.status == 200
    assert answer.get("transfer-encoding") is None
    assert json.loads(answer.body)["object"] == "list"


def test_pipelined_calls_are_answered_in_order(start_weir):
    weir = start_weir()
    with RawConnection(weir.address("gateway")) as connection:
        connection.send("".join(f"GET /echo?n={i} HTTP/1.1\r\nHost: a\r\n\r\n" for i in range(10)))
        answers = [json.loads(connection.read_answer().body)["query"] for _ in range(10)]
    assert answers == [f"n={i}" for i in range(10)]


def test_upstream_connections_are_used_again(start_weir, start_upstream):
    upstream = start_upstream()
    weir = start_weir(upstream=upstream.url, threads=1)
    for _ in range(20):
        assert weir.get("/v1/models").status_code == 200
    assert upstream.stats()["connections"] <= 3  # One of them is the question itself.


def test_calls_go_to_the_address_with_the_least_under_way(start_weir, start_upstream):
    slow, fast = start_upstream("--knob", "latency-ms=1000"), start_upstream()
    weir = start_weir(upstream=[slow.url, fast.url], threads=1)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: weir.get("/v1/models").status_code, range(40)))
    assert answers == [200] * 40
    assert fast.stats()["requests"] > slow.stats()["requests"]


# --- Upstream faults


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_an_absent_upstream_is_502_in_the_client_s_shape(start_weir):
    weir = start_weir(upstream=f"http://127.0.0.1:{free_port()}")
    answer = weir.chat(key="a")
    assert answer.status_code == 502
    assert answer.json()["error"]["message"]
    assert weir.get("/other").headers["content-type"].startswith("application/problem+json")


def test_a_silent_upstream_is_504(start_weir):
    weir = start_weir(timeouts={"first_byte": "200ms"})
    answer = weir.get("/v1/models?x-mock-latency-ms=5000")
    assert answer.status_code == 504
    assert answer.json()["error"]["message"]


def test_an_upstream_s_own_errors_pass_through(start_weir):
    weir = start_weir()
    answer = weir.chat(key="a", headers={"x-mock-status": "503", "x-mock-headers": "retry-after: 7"})
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "7"
    assert answer.json()["error"]["type"] == "server_error"


def test_an_answer_that_is_no_http_is_502(start_weir):
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = server.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello")
        connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    weir = start_weir(upstream=f"http://127.0.0.1:{server.getsockname()[1]}")
    assert weir.get("/v1/models").status_code == 502
    thread.join()
    server.close()


def test_a_body_cut_short_is_seen_as_cut_short(start_weir):
    weir = start_weir()
    with pytest.raises(httpx.RemoteProtocolError):
        weir.chat(key="a", stream=True, headers={"x-mock-abort-after": "2"})


def test_case83f_failed_tries_at_an_upstream_charge_one_request(start_weir, start_upstream):
    upstream = start_upstream()
    dead = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
    weir = start_weir(
        [{"name": "ten", "per": ["client"], "rate": "10/hour"}], upstream=[*dead, upstream.url], threads=1
    )
    answers = [weir.get("/v1/models", key="a") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["9", "8", "7", "6"]


def test_tls_to_the_upstream_is_verified(start_weir, start_upstream, certificates):
    upstream = start_upstream("--cert", str(certificates.cert), "--key", str(certificates.key))
    url = f"https://localhost:{upstream.port}"
    trusted = start_weir(upstreams=[{"name": "ai", "urls": [url], "tls": {"ca": str(certificates.ca)}}])
    assert trusted.get("/v1/models").status_code == 200
    untrusted = start_weir(upstreams=[{"name": "ai", "urls": [url]}])
    assert untrusted.get("/v1/models").status_code == 502
    other_name = start_weir(
        upstreams=[{"name": "ai", "urls": [url], "tls": {"ca": str(certificates.ca), "server_name": "other.example"}}]
    )
    assert other_name.get("/v1/models").status_code == 502


def test_tls_at_the_doors(start_weir, certificates):
    tls = {"cert": str(certificates.cert), "key": str(certificates.key)}
    doors = {door: {"address": "127.0.0.1:0", "tls": tls} for door in ("gateway", "api")}
    weir = start_weir(listen=doors)
    import ssl

    context = ssl.create_default_context(cafile=str(certificates.ca))
    with httpx.Client(verify=context) as client:
        port = weir.address("gateway")[1]
        assert client.get(f"https://localhost:{port}/v1/models").status_code == 200
        port = weir.address("api")[1]
        answer = client.post(f"https://localhost:{port}/v1/check", json={"attributes": {"client": "a"}})
        assert answer.json()["allowed"] is True
