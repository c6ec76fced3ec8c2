"""Servers pinned to one core, and what they cost: CPU time and memory from /proc, by process id."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

SERVER_CORE = 0
LOAD_CORE = 1
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_seconds(pid):
    """User and system time of the process, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def rss_bytes(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no VmRSS of {pid}")


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def connections_to(port):
    """Sockets that clients on this machine hold towards a port of its own, connected or about to be."""
    found = [line.split()[2:4] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(remote.endswith(f":{port:04X}") and state in ("01", "02") for remote, state in found)


@contextlib.contextmanager
def sampled(take):
    """Calls `take` every 50 ms on a thread, and once at the end."""
    done = threading.Event()

    def run():
        while not done.wait(0.05):
            take()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        take()


class Server:
    """A process of ours on one core. `work_pid` is the one that serves (nginx serves in a child)."""

    def __init__(self, name, command, port, core, folder, in_child=False):
        self.name = name
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self._log = open(Path(folder) / f"{name}.log", "wb")  # noqa: SIM115  closed in stop()
        self._process = subprocess.Popen(
            ["taskset", "-c", str(core), *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            cwd=folder,
        )
        try:
            self._wait_listening()
            self.work_pid = self._wait_child() if in_child else self._process.pid
        except Exception:
            self.stop()
            raise

    def _wait_listening(self, timeout_s=20):
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        self._log.flush()
        raise RuntimeError(f"{self.name} does not listen:\n{Path(self._log.name).read_text()}")

    def _wait_child(self, timeout_s=20):
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:  # nginx listens before it forks.
            if found := children(self._process.pid):
                return found[0]
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} has no worker")

    def cpu_seconds(self):
        return cpu_seconds(self.work_pid)

    def rss_bytes(self):
        return rss_bytes(self.work_pid)

    def stop(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def on_load_core(command, timeout_s=600):
    """Runs a load generator on the load's core and gives its output."""
    run = subprocess.run(
        ["taskset", "-c", str(LOAD_CORE), *map(str, command)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if run.returncode != 0:
        raise RuntimeError(f"{command[0]}: {run.stdout}{run.stderr}")
    return run.stdout
