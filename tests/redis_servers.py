"""Redis and Valkey servers of the tests' own: on a unix socket and a free port, without persistence, ended by pid."""

import shutil
import socket

import redis
from servers import Process, wait_until

FLAVOURS = ("redis", "valkey")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class RedisServer(Process):
    """`redis-server` or `valkey-server`, ready to answer."""

    def __init__(self, flavour, folder, *options, port=None, wrapper=(), env=None):
        binary = shutil.which(f"{flavour}-server")
        if binary is None:
            raise AssertionError(f"{flavour}-server is not installed; `make test` installs it")
        self.folder = folder
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        arguments = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        super().__init__(
            [*wrapper, binary, *arguments, "--dir", str(folder), *options], f"{flavour}-server", cwd=folder, env=env
        )
        self.client = redis.Redis(port=self.port, socket_timeout=10)
        wait_until(self._answers, f"{flavour}-server answers on port {self.port}")

    def _answers(self):
        if not self.running():
            raise AssertionError(f"{self.name} ended at once:\n{self.report()}")
        try:
            return self.client.ping()
        except redis.exceptions.AuthenticationError:
            return True  # It answers, to others.
        except redis.exceptions.RedisError:
            return False

    def keys(self):
        return sorted(self.client.scan_iter("*"))

    def calls(self, command="evalsha"):
        """How often the command has been carried out."""
        return self.client.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)
