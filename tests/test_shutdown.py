"""SIGTERM: readiness off first, accepting for drain_delay, calls under way finish, exit 0 by the deadline."""

import signal
import threading
import time

import httpx
from raw_http import RawConnection
from servers import http, wait_until

CHAT = {"model": "mock-1", "messages": [], "stream": True}


def ready(weir):
    try:
        return http.get(f"{weir.ops}/readyz").status_code
    except httpx.TransportError:
        return None


def test_case84f_sigterm_drops_no_call_and_ends_by_the_deadline(start_weir):
    delay_s, drain_s = 1.0, 1.5
    weir = start_weir(
        [{"name": "all", "per": [], "rate": "1000000/s"}],
        timeouts={"drain_delay": f"{int(delay_s * 1000)}ms", "drain": f"{int(drain_s * 1000)}ms"},
    )
    hung = threading.Thread(target=_hold_a_stream, args=(weir,))
    hung.start()
    wait_until(lambda: weir.metric("weir_streams") == 1, "the hung stream")

    stop = threading.Event()
    results = []  # (when it began, its outcome)

    def call(number):
        # About 200 calls/s over all threads; half of the threads keep their connections.
        client = httpx.Client(timeout=10) if number % 2 else None
        while not stop.is_set():
            began = time.monotonic()
            try:
                get = client.get if client else http.get
                results.append((began, get(f"{weir.gateway}/v1/models?x-mock-latency-ms=20").status_code))
            except httpx.TransportError as error:
                results.append((began, repr(error)))
                if weir.running():
                    time.sleep(0.005)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(results) > 50, "the load has begun")

    signalled = time.monotonic()
    weir.signal(signal.SIGTERM)
    wait_until(lambda: ready(weir) == 503, "readiness goes off", timeout_s=delay_s, interval_s=0.005)
    code = weir.wait()
    ended = time.monotonic()
    stop.set()
    for thread in threads:
        thread.join()
    hung.join()

    assert code == 0
    assert ended - signalled >= delay_s
    assert ended - signalled < delay_s + drain_s + 1.5
    # What began while the doors were surely open: nothing of it failed.
    failed = [(began - signalled, outcome) for began, outcome in results if outcome != 200]
    assert [failure for failure in failed if failure[0] < delay_s - 0.2] == []
    after = [outcome for began, outcome in results if signalled < began < signalled + delay_s - 0.2]
    assert len(after) > 20 and set(after) == {200}
    assert "stopped" in [line["message"] for line in weir.log_lines()]


def _hold_a_stream(weir):
    try:
        with httpx.stream(
            "POST", f"{weir.gateway}/v1/chat/completions", json=CHAT, headers={"x-mock-hang-after": "1"}, timeout=30
        ) as answer:
            for _ in answer.iter_bytes():
                pass
    except httpx.TransportError:
        pass


def test_case84f_calls_under_way_finish(start_weir):
    weir = start_weir(timeouts={"drain_delay": "0s", "drain": "10s"})
    answers = []
    thread = threading.Thread(target=lambda: answers.append(weir.get("/v1/models?x-mock-latency-ms=700").status_code))
    thread.start()
    wait_until(lambda: weir.metric("weir_upstream_pending") == 1, "the call is under way")
    weir.signal(signal.SIGTERM)
    assert weir.wait(8) == 0  # Sooner than the deadline: nothing was left to wait for.
    thread.join()
    assert answers == [200]


def test_answers_tell_clients_to_leave_while_draining(start_weir):
    weir = start_weir(timeouts={"drain_delay": "2s", "drain": "1s"})
    connections = {door: RawConnection(weir.address(door)) for door in ("gateway", "api")}
    requests = {
        "gateway": "GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n",
        "api": "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
    }
    for door, connection in connections.items():
        connection.send(requests[door])
        assert connection.read_answer().get("connection") is None
    weir.signal(signal.SIGTERM)
    wait_until(lambda: ready(weir) == 503, "readiness goes off")
    for door, connection in connections.items():
        connection.send(requests[door])
        assert connection.read_answer().get("connection") == "close", door
        assert connection.is_closed_within(5)
        connection.close()
    assert weir.wait() == 0


def test_a_second_sigterm_ends_at_once(start_weir):
    weir = start_weir(timeouts={"drain_delay": "30s", "drain": "30s"})
    weir.signal(signal.SIGTERM)
    wait_until(lambda: ready(weir) == 503, "readiness goes off")
    weir.signal(signal.SIGTERM)
    weir.wait(10)


def test_an_idle_server_ends_quickly(start_weir):
    weir = start_weir(timeouts={"drain_delay": "0s", "drain": "20s"})
    idle = RawConnection(weir.address("gateway"))
    began = time.monotonic()
    assert weir.stop() == 0
    assert time.monotonic() - began < 5
    idle.close()
