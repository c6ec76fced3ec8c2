"""The gateway holds on: streams, upgrades, aborted calls, slow and idle connections."""

import base64
import hashlib
import json
import re
import time

import httpx
from raw_http import RawConnection
from servers import CHAT, wait_until

# --- Streams


def test_events_come_out_as_they_come_in(start_weir):
    weir = start_weir([{"name": "ten", "per": ["client"], "rate": "10/hour"}])
    delays = []
    with httpx.stream(
        "POST",
        f"{weir.gateway}/v1/chat/completions",
        json={**CHAT, "stream": True},
        headers={"authorization": "Bearer a", "x-mock-pace-ms": "20", "x-mock-events": "20"},
    ) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-ratelimit-remaining"] == "9"
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                delays.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - json.loads(line[6:])["sent_ns"])
    assert len(delays) == 22
    assert sorted(delays)[len(delays) // 2] < 50_000_000  # A bound against buffering; bench/servers measures.


def test_case84d_no_event_waits_and_an_endless_line_takes_no_memory(start_weir):
    weir = start_weir()
    with RawConnection(weir.address("gateway")) as connection:
        body = json.dumps({**CHAT, "stream": True})
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
        connection.send(f"{head}x-mock-pace-ms: 1000\r\nx-mock-events: 2\r\n\r\n{body}")
        connection.read_head()
        late = []
        for _ in range(3):
            event = connection.read_chunk()
            now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            late.append(now_ns - int(re.search(rb'"sent_ns":(\d+)', event)[1]))
        assert max(late) < 100_000_000, late

    with RawConnection(weir.address("gateway")) as connection:
        before = weir.rss_bytes()
        connection.send(f"{head}x-mock-endless-bytes: {100 << 20}\r\n\r\n{body}")
        connection.read_head()
        total = largest = 0
        while chunk := connection.read_chunk():
            total += len(chunk)
            largest = max(largest, weir.rss_bytes() - before) if total % (8 << 20) < 70000 else largest
        assert total >= 100 << 20
        assert largest < 16 << 20


def test_case84b_an_aborted_stream_frees_its_slot(start_weir):
    weir = start_weir([{"name": "one-at-a-time", "per": ["client"], "parallel": 1}])
    body = json.dumps({**CHAT, "stream": True})
    request = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nContent-Length: {len(body)}\r\n"
        f"x-mock-hang-after: 1\r\n\r\n{body}"
    )

    def begin():
        connection = RawConnection(weir.address("gateway"))
        connection.send(request)
        return connection, connection.read_head().status

    for attempt in range(50):

        def admitted():
            connection, status = begin()
            if status == 200:
                return connection
            connection.close()
            return None

        connection = wait_until(admitted, f"slot free again before call {attempt}", timeout_s=5)
        if attempt % 10 == 0:
            second, status = begin()
            assert status == 429
            second.close()
        connection.abort() if attempt % 2 else connection.close()
    wait_until(lambda: weir.get(key="a").status_code == 200, "a slot after the last abort", timeout_s=5)
    wait_until(lambda: weir.metric("weir_streams") == 0, "no stream left in the gauge", timeout_s=5)


def test_a_client_that_leaves_ends_the_call_upstream(start_weir, start_upstream):
    upstream = start_upstream()
    weir = start_weir(upstream=upstream.url)
    body = json.dumps({**CHAT, "stream": True})
    connection = RawConnection(weir.address("gateway"))
    connection.send(
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
        f"x-mock-hang-after: 1\r\n\r\n{body}"
    )
    connection.read_head()
    connection.close()
    wait_until(lambda: upstream.stats()["left"] == 1, "the upstream sees the caller gone", timeout_s=5)


def websocket_key_accept(key):
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    return base64.b64encode(digest).decode()


def test_case84e_websockets_are_limited_and_passed_through(start_weir):
    weir = start_weir([{"name": "three", "per": ["client"], "rate": "3/hour"}])
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    request = (
        "GET /ws HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    statuses = []
    for _ in range(10):
        with RawConnection(weir.address("gateway")) as connection:
            connection.send(request)
            answer = connection.read_head()
            statuses.append(answer.status)
            if answer.status != 101:
                continue
            assert answer.get("sec-websocket-accept") == websocket_key_accept(key)
            connection.send(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58")  # "Hello", masked (RFC 6455, 5.7)
            assert connection._exactly(7) == b"\x81\x05Hello"
    assert statuses == [101] * 3 + [429] * 7


# --- Connections


def test_connections_beyond_the_bound_are_closed_and_counted(start_weir):
    weir = start_weir(bounds={"connections": 5})
    held = [RawConnection(weir.address("gateway")) for _ in range(5)]
    for connection in held:
        connection.send("GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.read_answer().status == 200
    with RawConnection(weir.address("gateway")) as refused:
        assert refused.is_closed_within(5)
    for connection in held:
        connection.close()
    wait_until(lambda: weir_metric_or_none(weir, "weir_connections_refused_total"), "the refusal is counted")


def weir_metric_or_none(weir, name):
    try:
        return weir.metric(name, door="gateway") == 1
    except httpx.TransportError:  # The bound holds for the ops door too, until the others have closed.
        return None


def test_a_slow_head_times_out(start_weir):
    weir = start_weir(timeouts={"header": "200ms"})
    for door in ("gateway", "api"):
        with RawConnection(weir.address(door)) as connection:
            connection.send("GET / HTTP/1.1\r\nHost: ")
            assert connection.read_answer().status == 408
            assert connection.is_closed_within(5)


def test_an_idle_connection_is_closed(start_weir):
    weir = start_weir(timeouts={"idle": "200ms"})
    for door in ("gateway", "api", "ops"):
        with RawConnection(weir.address(door)) as connection:
            assert connection.is_closed_within(5)
