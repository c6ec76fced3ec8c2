"""HTTP/2 at the gateway and the decision API, with clients of several makers: TLS with ALPN, and h2c by preface."""

import hashlib
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import httpx
import openai
import pytest
from raw_http import RawConnection
from raw_http2 import Http2Connection
from servers import CHAT, ROOT, Upstream, Weir, wait_until

NODE = Path(__file__).parent / "node"
INSTALL = "scripts/install_packages.sh test installs it"
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, CANCEL = 0, 1, 2, 8
STREAM = json.dumps({**CHAT, "stream": True}).encode()
JSON = {"content-type": "application/json"}
PLENTY = {"name": "plenty", "per": ["client"], "rate": "1000/hour"}


def tls_door(certificates, **more):
    return {"address": "127.0.0.1:0", "tls": {"cert": str(certificates.cert), "key": str(certificates.key), **more}}


def trusting(certificates, *protocols):
    context = ssl.create_default_context(cafile=str(certificates.ca))
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


@pytest.fixture
def weir(start_weir):
    return start_weir([PLENTY])


@pytest.fixture
def h2c(weir):
    with Http2Connection(weir.address("gateway")) as connection:
        yield connection


# --- Which version


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


# --- Calls


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


# --- Streams, bodies and backpressure


class TestStreams:
    def test_events_come_out_as_they_come_in(self, h2c):
        stream = h2c.begin(
            "/v1/chat/completions", "POST", {**JSON, "x-mock-pace-ms": "20", "x-mock-events": "20"}, ends=False
        )
        h2c.send(stream, STREAM, ends=True)
        answer = h2c.answer(stream)
        delays, seen = [], 0
        while not answer.over:
            assert h2c.read(10)
            now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            lines = answer.body.split(b"\n\n")[:-1]
            for line in lines[seen:]:
                if line.startswith(b"data: {"):
                    delays.append(now_ns - json.loads(line[6:])["sent_ns"])
            seen = len(lines)
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert len(delays) == 22
        assert sorted(delays)[len(delays) // 2] < 50_000_000

    @pytest.mark.parametrize("chunked", [False, True])
    def test_a_large_body_goes_both_ways(self, h2c, chunked):
        body = bytes(range(256)) * 4096 * 8  # 8 MiB
        fields = {} if chunked else {"content-length": str(len(body))}
        fields |= {"x-mock-body-bytes": "3000000"}
        answer = h2c.ask("/v1/any", "POST", fields, body)
        assert answer.body == b"x" * 3_000_000
        echo = json.loads(h2c.ask("/echo", "POST", fields, body).body)
        assert echo["body_bytes"] == len(body)
        assert echo["body_sha256"] == hashlib.sha256(body).hexdigest()

    def test_a_slow_reader_holds_little_and_nobody_up(self, weir, h2c):
        endless = {**JSON, "x-mock-endless-bytes": str(512 << 20)}
        h2c.ask("/v1/models")
        before = weir.rss_bytes()
        with Http2Connection(weir.address("gateway"), takes_data=False) as slow:
            streams = [slow.begin("/v1/chat/completions", "POST", endless, ends=False) for _ in range(10)]
            for stream in streams:
                slow.send(stream, STREAM, ends=True)
            slow.wait(lambda: sum(len(slow.answer(s).body) for s in streams) == 65535, "the window is full")
            # The connection's window is shut; what needs none goes on.
            head = slow.begin("/v1/models", "HEAD")
            assert slow.finish(head).status == 200
            assert weir.rss_bytes() - before < 16 << 20

    def test_a_stream_that_is_not_read_does_not_hold_others(self, weir):
        with Http2Connection(weir.address("gateway"), takes_data=False) as connection:
            connection.open_window(1 << 24)
            endless = {**JSON, "x-mock-endless-bytes": str(64 << 20)}
            stuck = connection.begin("/v1/chat/completions", "POST", endless, ends=False)
            connection.send(stuck, STREAM, ends=True)
            connection.wait(lambda: len(connection.answer(stuck).body) == 65535, "the stream's window is full")
            for _ in range(20):
                assert connection.ask("/v1/models").status == 200
            connection.open_window(100_000, stuck)
            connection.wait(lambda: len(connection.answer(stuck).body) == 165535, "what the window lets go")

    def test_an_upload_is_taken_as_the_upstream_takes_it(self, start_weir, weir):
        """An upstream that reads nothing: the client's window stays shut, and other calls go on."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            stuck = start_weir(
                upstreams=[{"name": "ai", "urls": [url]}, {"name": "ok", "urls": ["http://127.0.0.1:1"]}],
                routes=[{"match": {"path": "/up"}, "upstream": "ai"}, {"match": {"path": "/*"}, "upstream": "ok"}],
            )
            before = stuck.rss_bytes()
            with Http2Connection(stuck.address("gateway")) as connection:
                stream = connection.begin("/up", "POST", ends=False)
                sent = 0
                chunk = b"x" * 16384

                def quiet():
                    """Sends what it may, until the window has been shut for half a second."""
                    nonlocal sent
                    idle_since = time.monotonic()
                    while time.monotonic() - idle_since < 0.5:
                        room = min(connection.send_room(stream), len(chunk))
                        if room > 0:
                            connection.send(stream, chunk[:room])
                            sent += room
                            idle_since = time.monotonic()
                        else:
                            connection.read(0.05)

                quiet()
                assert sent < 16 << 20  # The kernel's buffers, and little more.
                assert stuck.rss_bytes() - before < 8 << 20
                assert connection.ask("/other").status == 502

    def test_an_aborted_stream_frees_its_slot(self, start_weir):
        weir = start_weir([{"name": "one-at-a-time", "per": ["client"], "parallel": 1}])
        with Http2Connection(weir.address("gateway")) as connection:

            def begin():
                stream = connection.begin(
                    "/v1/chat/completions", "POST", {**JSON, "x-mock-hang-after": "1"}, ends=False
                )
                connection.send(stream, STREAM, ends=True)
                answer = connection.answer(stream)
                connection.wait(lambda: answer.heads, "an answer")
                return stream, answer.status

            def admitted():
                stream, status = begin()
                return stream if status == 200 else None

            for attempt in range(20):
                stream = wait_until(admitted, f"the slot is free before call {attempt}", timeout_s=5)
                assert begin()[1] == 429
                connection.reset(stream)
            wait_until(lambda: weir.metric("weir_streams") == 0, "no stream is left", timeout_s=5)
            statuses = [line.get("status") for line in weir.log_lines("call")]
            assert 499 not in statuses  # Their answers had begun.

    def test_a_call_that_is_reset_while_the_upstream_thinks_is_cancelled(self, weir, upstream):
        with Http2Connection(weir.address("gateway")) as connection:
            stream = connection.begin("/v1/models/slow?x-mock-latency-ms=20000")
            wait_until(lambda: weir.metric("weir_connections", door="gateway") == 1, "the connection")
            connection.ask("/v1/models")
            connection.reset(stream)
            wait_until(
                lambda: [line for line in weir.log_lines("call") if line.get("status") == 499], "a cancelled call", 5
            )
            assert connection.ask("/v1/models").status == 200

    def test_an_answer_cut_short_is_a_reset(self, h2c):
        stream = h2c.begin("/v1/chat/completions", "POST", {**JSON, "x-mock-abort-after": "2"}, ends=False)
        h2c.send(stream, STREAM, ends=True)
        answer = h2c.finish(stream)
        assert answer.status == 200
        assert answer.body.count(b"data: ") >= 2
        assert (answer.ended, answer.reset) == (False, INTERNAL_ERROR)
        assert h2c.ask("/v1/models").status == 200  # The connection goes on.

    def test_a_refused_upload_is_answered_whole(self, start_weir):
        weir = start_weir([{"name": "none", "per": ["client"], "rate": "1/hour"}])
        with Http2Connection(weir.address("gateway")) as connection:
            assert connection.ask("/v1/models").status == 200
            body = b"x" * 200_000  # More than a window.
            fields = {"content-length": str(len(body))}
            answer = connection.ask("/v1/chat/completions", "POST", fields, body)
            assert (answer.status, answer.ended, answer.reset) == (429, True, None)

    def test_an_answer_that_nobody_takes_is_given_up(self, start_weir):
        weir = start_weir([PLENTY], timeouts={"write": "300ms"})
        with Http2Connection(weir.address("gateway"), takes_data=False, window=100) as connection:
            stream = connection.begin("/v1/models")
            answer = connection.finish(stream)
            assert (len(answer.body), answer.reset) == (100, CANCEL)


# --- Connections


class TestConnections:
    def test_an_idle_connection_is_closed(self, start_weir):
        weir = start_weir([PLENTY], timeouts={"idle": "300ms"})
        with Http2Connection(weir.address("gateway")) as connection:
            assert connection.ask("/v1/models").status == 200
            connection.wait_closed(5)
            assert [goaway.error_code for goaway in connection.goaways] == [NO_ERROR]

    def test_a_head_that_never_ends(self, start_weir):
        weir = start_weir([PLENTY], timeouts={"header": "300ms"})
        with Http2Connection(weir.address("gateway")) as connection:
            assert connection.ask("/v1/models").status == 200
            connection.send_bytes(b"\x00\x00\x01\x01\x01\x00\x00\x00\x03\x82")  # HEADERS without END_HEADERS.
            connection.wait_closed(5)

    def test_pings_do_not_keep_a_connection(self, start_weir):
        weir = start_weir([PLENTY], timeouts={"idle": "500ms"})
        with Http2Connection(weir.address("gateway")) as connection:
            began = time.monotonic()
            connection.ask("/v1/models")
            while connection.read(0.05) and time.monotonic() - began < 5:
                if not connection.goaways:
                    connection.ping()
            assert connection.closed

    def test_sigterm_lets_the_call_finish_and_turns_others_away(self, start_weir):
        weir = start_weir([PLENTY], timeouts={"drain_delay": "300ms", "drain": "5s"})
        with Http2Connection(weir.address("gateway")) as busy, Http2Connection(weir.address("api")) as idle:
            assert idle.ask("/v1/check", "POST", JSON, b'{"attributes":{"client":"a"}}').status == 200
            slow = busy.begin("/v1/models?x-mock-latency-ms=1500")
            assert busy.ask("/v1/models").status == 200
            weir.signal(signal.SIGTERM)
            idle.wait(lambda: idle.goaways, "the notice")
            assert busy.ask("/v1/models").status == 200  # The doors are still open.
            busy.wait(lambda: busy.goaways, "the notice, once the doors are closed")
            for connection in (busy, idle):
                assert connection.goaways[0].error_code == NO_ERROR
                assert connection.goaways[0].last_stream_id == 2**31 - 1
            answer = busy.finish(slow)
            assert (answer.status, answer.ended) == (200, True)
            busy.wait_closed(5)
            idle.wait_closed(5)
            assert busy.goaways[-1].last_stream_id == 5
            assert idle.goaways[-1].last_stream_id == 1
        assert weir.wait() == 0
        assert weir.log_lines("stopped")[0]["calls_cut"] == 0

    def test_sigterm_waits_for_an_answer_that_the_client_still_reads(self, start_weir):
        weir = start_weir([PLENTY], timeouts={"drain": "10s"})
        with Http2Connection(weir.address("gateway"), takes_data=False, window=100) as connection:
            stream = connection.begin("/v1/models")
            answer = connection.answer(stream)
            connection.wait(lambda: len(answer.body) == 100, "what the window lets through")
            weir.signal(signal.SIGTERM)
            connection.wait(lambda: connection.goaways, "the notice")
            assert weir.running()
            connection.open_window(1000, stream)
            assert json.loads(connection.finish(stream).body)["object"] == "list"
        assert weir.wait() == 0

    def test_sigterm_spares_the_call_of_a_client_that_takes_no_goaway(self, start_weir):
        """httpx fails every call that is under way when a GOAWAY comes: it comes after those that end soon."""
        weir = start_weir([PLENTY], timeouts={"drain_delay": "3s", "drain": "5s"})
        with httpx.Client(http1=False, http2=True, timeout=20) as client:
            fields = {"x-mock-pace-ms": "200", "x-mock-events": "6"}
            with client.stream("POST", f"{weir.gateway}/v1/chat/completions", content=STREAM, headers=fields) as answer:
                lines = answer.iter_lines()
                next(lines)
                weir.signal(signal.SIGTERM)
                assert list(lines)[-2:] == ["data: [DONE]", ""]
        assert weir.wait() == 0


# --- Certificates


def certificate_of(weir, door="gateway"):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(weir.address(door), 10) as plain, context.wrap_socket(plain) as tls:
        return tls.getpeercert(binary_form=True)


def der(path):
    return ssl.PEM_cert_to_DER_cert(path.read_text())


class TestCertificates:
    @pytest.fixture
    def files(self, certificates, tmp_path):
        """Copies, so that a test may replace them."""

        class Files:
            cert, key, ca = tmp_path / "cert.pem", tmp_path / "key.pem", certificates.ca

            def use(self, source):
                self.cert.write_bytes(source.cert.read_bytes())
                self.key.write_bytes(source.key.read_bytes())

        files = Files()
        files.use(certificates)
        return files

    @pytest.mark.parametrize("how", ["sighup", "admin", "watch"])
    def test_a_reload_reads_them_again(self, start_weir, certificates, other_certificates, files, how):
        listen = {door: tls_door(files) for door in ("gateway", "api")}
        weir = start_weir([PLENTY], listen=listen, config={"watch": how == "watch"})
        assert certificate_of(weir) == der(certificates.cert)
        context = trusting(certificates, "h2")
        with Http2Connection(weir.address("gateway"), context) as old:
            slow = old.begin("/v1/models?x-mock-latency-ms=300")
            files.use(other_certificates)
            if how == "sighup":
                assert weir.hup()["message"] == "reloaded"
            elif how == "admin":
                assert weir.reload().status_code == 200
            new = [der(other_certificates.cert)] * 2
            wait_until(lambda: [certificate_of(weir, door) for door in ("gateway", "api")] == new, "the new one", 10)
            assert old.finish(slow).status == 200
            assert old.ask("/v1/models").status == 200  # As it was.
            assert old.peer_certificate() == der(certificates.cert)

    @pytest.mark.parametrize(
        ("spoil", "reason"),
        [
            (lambda files, _: files.cert.unlink(), "cert.pem: No such file or directory"),
            (lambda files, _: files.key.write_text("no key\n"), "key.pem: "),
            (lambda files, other: files.key.write_bytes(other.key.read_bytes()), "key.pem: key values mismatch"),
        ],
    )
    def test_a_fault_keeps_the_old_ones(self, start_weir, certificates, other_certificates, files, spoil, reason):
        weir = start_weir([PLENTY], listen={"gateway": tls_door(files)})
        spoil(files, other_certificates)
        answer = weir.reload()
        assert answer.status_code == 422
        assert "listen.gateway: " in answer.text and reason in answer.text
        line = weir.hup()
        assert line["message"] == "reload failed; the running policy stays"
        assert reason in line["error"]
        assert certificate_of(weir) == der(certificates.cert)
        assert weir.metric("weir_config_last_reload_successful") == 0
        files.use(other_certificates)
        assert weir.reload().status_code == 200
        assert certificate_of(weir) == der(other_certificates.cert)

    def test_a_missing_file_is_named_at_start(self, weir_command, tmp_path):
        config = tmp_path / "weir.yaml"
        config.write_text(
            "listen: {gateway: {address: '127.0.0.1:0', tls: {cert: gone.pem, key: gone.key}}}\n"
            "limits: [{name: a, per: [ip], rate: 1/s}]\n"
        )
        run = weir_command("serve", "--config", config)
        assert run.returncode != 0
        assert "listen.gateway: certificate " in run.stderr
        assert "gone.pem: No such file or directory" in run.stderr

    def test_a_client_certificate_is_still_asked_for_when_a_session_is_resumed(self, start_weir, certificates):
        weir = start_weir([PLENTY], listen={"gateway": tls_door(certificates, client_ca=str(certificates.ca))})
        url = f"https://localhost:{weir.address('gateway')[1]}/v1/models"
        with pytest.raises(httpx.TransportError):
            httpx.get(url, verify=trusting(certificates))
        context = trusting(certificates, "h2")
        context.load_cert_chain(certificates.cert, certificates.key)
        session = None
        for _ in range(3):
            with socket.create_connection(weir.address("gateway"), 10) as plain:
                with context.wrap_socket(plain, server_hostname="localhost", session=session) as tls:
                    assert tls.selected_alpn_protocol() == "h2"
                    tls.settimeout(5)
                    assert tls.recv(9)[3] == 4  # SETTINGS; the tickets came before.
                    session = tls.session


# --- Clients


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
