"""HTTP/2 at the gateway and the doors for programs: which version, and what becomes of a call."""

import json
import socket
import time

import httpx
import pytest
from raw_http import RawConnection
from raw_http2 import CANCEL, JSON, PROTOCOL_ERROR, Http2Connection
from servers import CHAT, PLENTY, tls_door, trusting


@pytest.fixture
def weir(start_weir):
    return start_weir([PLENTY])


class TestAlpn:
    @pytest.mark.parametrize(
        ("offered", "chosen"),
        [(["h2", "http/1.1"], "h2"), (["http/1.1", "h2"], "h2"), (["http/1.1"], "http/1.1"), ([], None)],
    )
    @pytest.mark.parametrize("door", ["gateway", "api", "admin", "ops"])
    def test_the_door_prefers_http2(self, start_weir, certificates, door, offered, chosen):
        weir = start_weir([PLENTY], listen={door: tls_door(certificates)})
        with socket.create_connection(weir.address(door), 10) as plain:
            context = trusting(certificates, *offered)
            with context.wrap_socket(plain, server_hostname="localhost") as tls:
                assert tls.selected_alpn_protocol() == chosen

    def test_without_alpn_a_client_gets_http1(self, start_weir, certificates):
        weir = start_weir([PLENTY], listen={"gateway": tls_door(certificates)})
        answer = httpx.get(f"https://localhost:{weir.address('gateway')[1]}/v1/models", verify=trusting(certificates))
        assert (answer.http_version, answer.status_code) == ("HTTP/1.1", 200)


class TestPriorKnowledge:
    def test_one_port_speaks_both(self, weir):
        with Http2Connection(weir.address("gateway")) as two, RawConnection(weir.address("gateway")) as one:
            assert two.ask("/v1/models").status == 200
            one.send("GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n")
            assert one.read_head().status == 200

    def test_a_preface_in_pieces(self, weir):
        with RawConnection(weir.address("gateway")) as connection:
            for piece in (b"P", b"RI", b" * HTTP/2.0\r\n", b"\r\nSM\r\n\r\n", b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"):
                connection.send(piece)
                time.sleep(0.02)  # So that each comes alone.
            assert connection.read_some()[3:5] == b"\x04\x00"  # SETTINGS.

    def test_a_request_in_pieces_is_no_preface(self, weir):
        with RawConnection(weir.address("gateway")) as connection:
            for piece in ("P", "R", "OPFIND /v1/models HTTP/1.1\r\n", "Host: a\r\n\r\n"):
                connection.send(piece)
                time.sleep(0.02)
            assert connection.read_head().status != 400

    def test_a_preface_that_never_ends(self, start_weir):
        weir = start_weir([PLENTY], timeouts={"header": "200ms"})
        with RawConnection(weir.address("gateway")) as connection:
            connection.send("PR")
            assert connection.read_some() == b""

    @pytest.mark.parametrize("door", ["api", "admin", "ops"])
    def test_the_doors_for_programs(self, weir, door):
        path = {"api": "/v1/check", "admin": "/admin/reload", "ops": "/livez"}[door]
        body = {"api": b'{"attributes":{"client":"a"}}', "admin": b"", "ops": None}[door]
        with Http2Connection(weir.address(door)) as connection:
            for _ in range(3):
                answer = connection.ask(path, "GET" if body is None else "POST", JSON, body)
                assert answer.status == 200
                assert answer.ended
                assert int(answer.headers["content-length"]) == len(answer.body)
            assert weir.metric("weir_connections", door=door) == (2 if door == "ops" else 1)


class TestCalls:
    def test_an_answer_and_its_limit_headers(self, h2c):
        answer = h2c.ask("/v1/models", headers={"authorization": "Bearer a"})
        assert answer.status == 200
        assert answer.headers["x-ratelimit-remaining"] == "999"
        assert answer.headers["content-type"] == "application/json"
        assert json.loads(answer.body)["object"] == "list"
        assert not {"connection", "transfer-encoding", "keep-alive"} & answer.headers.keys()

    def test_a_refusal(self, start_weir):
        weir = start_weir([{"name": "one", "per": ["client"], "rate": "1/hour"}])
        with Http2Connection(weir.address("gateway")) as connection:
            assert connection.ask("/v1/models").status == 200
            for method, body in (("GET", None), ("POST", json.dumps(CHAT).encode())):
                answer = connection.ask("/v1/chat/completions", method, JSON, body)
                assert answer.status == 429
                assert 0 < int(answer.headers["retry-after"]) <= 3600
                assert json.loads(answer.body)["error"]["code"] == "rate_limit_exceeded"
                assert answer.ended and answer.reset is None

    def test_many_streams_at_once(self, h2c):
        streams = [h2c.begin(f"/v1/models?x-mock-latency-ms={50 + i % 7}") for i in range(100)]
        assert {h2c.finish(stream).status for stream in streams} == {200}

    def test_head(self, h2c):
        got, head = h2c.ask("/v1/models"), h2c.ask("/v1/models", "HEAD")
        assert (head.status, head.body, head.ended) == (200, b"", True)
        assert head.headers["content-length"] == got.headers["content-length"]

    def test_what_the_upstream_sees(self, h2c, weir):
        fields = [("cookie", "a=1"), ("x-trace", "1"), ("te", "trailers"), ("cookie", "b=2")]
        knobs = [("x-mock-headers", "X-Mixed-Case: Kept")]
        answer = h2c.ask("/echo?q=1", "POST", [*fields, *knobs], b"body", authority="api.example.com:8443")
        assert answer.status == 200
        assert answer.headers["x-mixed-case"] == "Kept"
        echo = json.loads(answer.body)
        assert (echo["method"], echo["target"], echo["body"]) == ("POST", "/echo?q=1", "body")
        seen = [(name.lower(), value) for name, value in echo["headers"]]
        assert ("cookie", "a=1; b=2") in seen
        assert ("x-trace", "1") in seen
        assert ("x-forwarded-host", "api.example.com:8443") in seen
        assert ("x-forwarded-proto", "http") in seen
        assert "te" not in dict(seen)

    def test_the_scheme_is_what_the_connection_says(self, start_weir, certificates):
        weir = start_weir([PLENTY], listen={"gateway": tls_door(certificates)})
        with Http2Connection(weir.address("gateway"), trusting(certificates, "h2")) as connection:
            echo = json.loads(connection.ask("/echo").body)  # Its :scheme says http.
            assert dict(echo["headers"])["X-Forwarded-Proto"] == "https"

    def test_trailers_of_the_answer(self, h2c):
        answer = h2c.ask("/v1/models", headers={"x-mock-trailers": "X-Checksum: abc|x-other: d"})
        assert answer.status == 200
        assert answer.trailers == {"x-checksum": "abc", "x-other": "d"}
        assert answer.ended

    def test_trailers_of_the_request(self, h2c):
        stream = h2c.begin("/echo", "POST", ends=False)
        h2c.send(stream, b"some ")
        h2c.send(stream, b"body")
        h2c.send_trailers(stream, {"x-checksum": "abc"})
        answer = h2c.finish(stream)
        echo = json.loads(answer.body)
        assert (answer.status, echo["body"]) == (200, "some body")
        assert [[name.lower(), value] for name, value in echo["trailers"]] == [["x-checksum", "abc"]]

    def test_100_continue_comes_once_the_call_is_allowed(self, start_weir):
        weir = start_weir([{"name": "one", "per": ["client"], "rate": "1/hour"}])
        with Http2Connection(weir.address("gateway")) as connection:
            fields = {**JSON, "expect": "100-continue", "content-length": "4"}
            stream = connection.begin("/echo", "POST", fields, ends=False)
            answer = connection.answer(stream)
            connection.wait(lambda: answer.heads, "100 Continue")
            assert answer.status == 100
            connection.send(stream, b"body", ends=True)
            assert json.loads(connection.finish(stream).body)["body"] == "body"
            assert answer.status == 200

            began = time.monotonic()
            stream = connection.begin("/echo", "POST", fields, ends=False)
            refused = connection.finish(stream)
            assert [head[":status"] for head in refused.heads] == ["429"]
            assert refused.ended
            assert time.monotonic() - began < 0.5  # Nobody waits for a body that was not asked for.

    def test_a_host_at_odds_with_the_authority_is_refused(self, h2c):
        assert h2c.ask("/v1/models", headers={"host": "weir.test"}).status == 200
        assert h2c.ask("/v1/models", headers={"host": "other.test"}).status == 400

    @pytest.mark.parametrize(
        "field",
        [
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("te", "gzip"),
            ("x-bad", "a\r\nx-smuggled: 1"),
            ("x\r\nx-smuggled", "1"),
            ("content-length", "5"),
            ("content-length", "0, 4"),
            ("Upper", "1"),
        ],
    )
    def test_what_http1_could_read_differently_is_refused(self, h2c, weir, field):
        body = b"body" if field[0] == "content-length" else None
        answer = h2c.ask("/echo/smuggling", "POST", [field], body)
        assert answer.reset in (PROTOCOL_ERROR, CANCEL) or answer.status == 400
        assert h2c.ask("/v1/models").status == 200
        calls = [line for line in weir.log_lines("call") if line.get("path") == "/echo/smuggling"]
        # That a body is too short shows at its end only: such a call has begun, and is broken off.
        assert [call["status"] for call in calls] == ([499] if field == ("content-length", "5") else [])

    def test_large_heads_are_refused(self, start_weir):
        weir = start_weir([PLENTY], bounds={"header": "8KiB"})
        with Http2Connection(weir.address("gateway")) as connection:
            assert connection.ask("/v1/models", headers={"x-long": "v" * 9000}).status == 431
            assert connection.ask("/v1/models", headers={f"x-{i}": "" for i in range(101)}).status == 431
            assert connection.ask("/v1/models").status == 200
