"""Redis and Valkey servers of the tests' own: on a unix socket and a free port, without persistence, ended by pid."""

import shutil
import socket
import subprocess

from servers import Process, wait_until

import redis

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


class RedisCluster:
    """Three masters, each with a third of the slots, and no replica."""

    def __init__(self, flavour, make_folder, started):
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
        self.servers = []
        for _ in range(3):
            # The port of the cluster's own bus is 10,000 above, unless it is named.
            bus = ("--cluster-port", str(free_port()))
            self.servers.append(RedisServer(flavour, make_folder(flavour), *options, *bus))
            started.append(self.servers[-1])
        addresses = [f"127.0.0.1:{server.port}" for server in self.servers]
        cli = shutil.which(f"{flavour}-cli")
        command = [cli, "--cluster", "create", *addresses, "--cluster-replicas", "0", "--cluster-yes"]
        made = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
        wait_until(lambda: all(self._is_whole(server) for server in self.servers), "every node knows all slots")
        self.url = f"redis+cluster://{addresses[0]},{addresses[1]}"

    @staticmethod
    def _is_whole(server):
        info = server.client.execute_command("CLUSTER", "INFO")
        text = info if isinstance(info, str) else str(info)
        return "ok" in text and "16384" in text

    def move_slot(self, slot, source, target):
        """The steps of the Cluster specification, with the keys that the slot holds."""
        ids = [server.client.execute_command("CLUSTER", "MYID").decode() for server in (source, target)]
        target.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        while keys := source.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for server in (target, source):
            server.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[1])
