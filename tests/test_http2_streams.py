"""HTTP/2 at the gateway: streams and bodies at their own pace, connections that end."""

import hashlib
import json
import signal
import socket
import time

import httpx
import pytest
from raw_http2 import CANCEL, INTERNAL_ERROR, JSON, NO_ERROR, Http2Connection
from servers import CHAT, PLENTY, wait_until

STREAM = json.dumps({**CHAT, "stream": True}).encode()


@pytest.fixture
def weir(start_weir):
    return start_weir([PLENTY])


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
