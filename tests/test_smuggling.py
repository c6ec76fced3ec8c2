"""Requests that two readers could frame differently: refused with 400 and a closed connection, nothing forwarded."""

import pytest
from raw_http import RawConnection

SHAPES = {
    "content-length-twice": "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "content-length-twice-unequal": (
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy"
    ),
    "content-length-list": "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx",
    "content-length-signed": "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
    "content-length-and-transfer-encoding": (
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "transfer-encoding-xchunked": "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "transfer-encoding-gzip-chunked": (
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
    ),
    "transfer-encoding-twice": (
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"
    ),
    "transfer-encoding-on-http-1.0": ("POST /echo HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "two-hosts": "GET /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "no-host": "GET /echo HTTP/1.1\r\nX: y\r\n\r\n",
    "obs-fold": "GET /echo HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n",
    "bare-lf": "GET /echo HTTP/1.1\nHost: a\n\n",
    "bare-lf-in-a-field": "GET /echo HTTP/1.1\r\nHost: a\r\nX: y\nContent-Length: 3\r\n\r\n",
    "space-before-the-colon": "GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length : 0\r\n\r\n",
    "space-before-the-first-field": "GET /echo HTTP/1.1\r\n Host: a\r\nHost: a\r\n\r\n",
    "nul-in-a-value": "GET /echo HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
    "absolute-target-at-odds-with-host": "GET http://b/echo HTTP/1.1\r\nHost: a\r\n\r\n",
    "bad-chunk-size": "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "negative-chunk-size": "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n",
    "chunk-size-of-17-digits": (
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\na\r\n0\r\n\r\n"
    ),
    "chunk-without-its-line-end": (
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n"
    ),
    "chunk-extension-of-1-mib": (
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;"
        + "x" * (1 << 20)
        + "\r\na\r\n0\r\n\r\n"
    ),
}
SMUGGLED = "GET /echo/smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture(scope="module")
def doors(tmp_path_factory, upstream):
    """One server for all shapes: each is a connection of its own."""
    from servers import Weir, make_config

    weir = Weir(tmp_path_factory.mktemp("weir"), make_config(upstream=upstream.url))
    yield weir
    assert weir.stop() == 0, weir.report()


@pytest.mark.parametrize("door", ["gateway", "api"])
@pytest.mark.parametrize("shape", SHAPES)
def test_case86_smuggling_shapes_are_400_and_close(doors, upstream, shape, door):
    smuggled_before = upstream.requests_for("/echo/smuggled")
    with RawConnection(doors.address(door)) as connection:
        try:
            connection.send(SHAPES[shape].encode("latin-1") + SMUGGLED.encode())
        except (BrokenPipeError, ConnectionResetError):
            pass  # Refused before all of it was sent.
        answer = connection.read_answer()
        assert answer.status == 400
        assert answer.get("connection") == "close"
        assert connection.is_closed_within(5)
    assert upstream.requests_for("/echo/smuggled") == smuggled_before


def test_case86_the_server_goes_on(doors):
    assert doors.get("/v1/models").status_code == 200
