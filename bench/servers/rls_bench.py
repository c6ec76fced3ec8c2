"""The gRPC door against a grpc++ server that answers by callbacks and makes the same decision."""

import os
import re
from pathlib import Path

import rivals
from processes import on_load_core

SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
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
    starts = {
        "weir": lambda: rivals.weir_grpc(binary, folder, [LIMIT]),
        "grpc++ callbacks": lambda: rivals.grpc_callbacks(binary, folder),
    }
    shapes = [("8 connections x 16 streams", 8, 16, 6), ("64 connections x 1 stream", 64, 1, 1.8)]
    return [row(starts, message, *shape) for shape in shapes]


def row(starts, message, name, connections, streams, wanted):
    """The rival, weir, the rival, weir; the better value of each counts."""
    rival = "grpc++ callbacks"
    runs = {who: [] for who in starts}
    for who in (rival, "weir", rival, "weir"):
        with starts[who]() as server:
            load(server, message, connections, streams, 1)
            before = server.cpu_seconds()
            requests = load(server, message, connections, streams, SECONDS)
            runs[who].append((server.cpu_seconds() - before) * 1e6 / requests)
    best = {who: min(values) for who, values in runs.items()}
    ratio = best[rival] / best["weir"]
    print(
        f"rls: {name}: weir {best['weir']:.2f}, {rival} {best[rival]:.2f} cpu us/request, "
        f"ratio {ratio:.2f} (wanted {wanted})",
        flush=True,
    )
    return {
        "group": "rls",
        "name": f"ShouldRateLimit, {name}",
        "value": round(best["weir"], 2),
        "unit": "cpu us/request",
        "rival": rival,
        "rival_value": round(best[rival], 2),
        "ratio": round(ratio, 2),
        "wanted": wanted,
        "all_cpu_us": {who: [round(value, 3) for value in values] for who, values in runs.items()},
    }


def load(server, message, connections, streams, seconds):
    """How many calls were answered; h2load counts those with a status of 200 and all their frames."""
    headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"]
    shape = ["-t1", f"-c{connections}", f"-m{streams}", f"-D{max(1, round(seconds))}", "-d", message]
    output = on_load_core(["h2load", *shape, *headers, f"http://{server.address}{METHOD}"])
    counted = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored", output)
    if not counted or int(counted[2]) or int(counted[3]) or int(counted[1]) == 0:
        raise RuntimeError(f"{server.name}: calls failed\n{output}")
    return int(counted[1])
