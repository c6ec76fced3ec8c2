"""The gRPC door against a grpc++ server that answers by callbacks and makes the same decision."""

import re
from functools import partial
from pathlib import Path

import rivals
from in_turn import cpu_us, row
from processes import on_load_core

METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
LIMIT = {
    "name": "per-user",
    "domain": "bench",
    "descriptor": [{"key": "user"}, {"key": "path"}],
    "rate": f"{rivals.RATE_PER_S}/s",
}


def field(number, content):
    """A protobuf field of bytes; everything here is shorter than 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def request():
    """A RateLimitRequest with a descriptor of two entries, in its gRPC frame."""
    entries = [
        field(1, field(1, key) + field(2, value)) for key, value in ((b"user", b"alice"), (b"path", b"/v1/chat"))
    ]
    message = field(1, b"bench") + field(2, b"".join(entries))
    return b"\0" + len(message).to_bytes(4, "big") + message


def rls(binary, folder):
    message = Path(folder) / "rls_request.bin"
    message.write_bytes(request())

    def measure(start, *shape):
        return lambda: cpu_us(start, lambda server: partial(load, server, message, *shape))

    def compare(name, *shape, wanted):
        weir = measure(lambda: rivals.weir_grpc(binary, folder, [LIMIT]), *shape)
        rival = measure(lambda: rivals.grpc_callbacks(binary, folder), *shape)
        return row("rls", f"ShouldRateLimit, {name}", weir, ("grpc++ callbacks", rival), wanted)

    return [
        compare("8 connections x 16 streams", 8, 16, wanted=6),
        compare("64 connections x 1 stream", 64, 1, wanted=1.8),
    ]


def load(server, message, connections, streams, seconds):
    """How many calls were answered; h2load counts those with a status of 200 and all their frames."""
    headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"]
    shape = ["-t1", f"-c{connections}", f"-m{streams}", f"-D{max(1, round(seconds))}", "-d", message]
    output = on_load_core(["h2load", *shape, *headers, f"http://{server.address}{METHOD}"])
    counted = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored", output)
    if not counted or int(counted[2]) or int(counted[3]) or int(counted[1]) == 0:
        raise RuntimeError(f"{server.name}: calls failed\n{output}")
    return int(counted[1])
